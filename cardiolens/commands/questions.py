"""`python -m cardiolens.questions reports=... studies=... out=...`: draft questions of reports and masks."""

import sys
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cardiolens.config.questions import QuestionsSpec
    from cardiolens.curation.questions.draft_questions import Reader


def main() -> int:
    """Draft questions from the reports and masks that the command line names."""
    from cardiolens.base.errors import InputError, RunError
    from cardiolens.commands.command import begin, tell
    from cardiolens.config.command_words import check_once
    from cardiolens.config.compose import read_questions_spec
    from cardiolens.config.questions import QuestionsSpec
    from cardiolens.curation.questions.blind_probes import probe
    from cardiolens.curation.questions.draft_questions import questions
    from cardiolens.curation.questions.unknown_words import count_unknown
    from cardiolens.runtime.stopping import StoppedError

    begin(__doc__, {"": QuestionsSpec})
    own, about_model = split(sys.argv[1:])
    try:
        check_once(about_model)
        spec = read_questions_spec(own)
        if spec.mode == "unknown":
            return count_unknown(spec)
        if spec.mode == "probe":
            return probe(spec, about_model)
        return questions(spec, _second(spec, about_model))
    except (InputError, RunError, StoppedError) as error:
        return tell(error)


def _second(spec: "QuestionsSpec", words: Sequence[str]) -> "Reader | None":
    """Return the second extractor that the words name; None if there are no words."""
    if not words:
        return None
    from cardiolens.curation.questions.model_extraction import ask, model_spec

    return partial(ask, model_spec(spec, words))


def split(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Separate the words on reports from the words on the model that reads them, which are a sweep's."""
    from cardiolens.config.command_words import MODEL_OPTIONS

    about_model = [word for word in words if word.partition("=")[0].split(".")[0] in MODEL_OPTIONS]
    return [word for word in words if word not in about_model], about_model


if __name__ == "__main__":
    sys.exit(main())
