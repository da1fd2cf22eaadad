"""`python -m cardiolens.questions reports=... studies=... out=...`: draft questions of reports and masks."""

from collections.abc import Sequence
from functools import partial

from cardiolens.base.errors import InputError
from cardiolens.commands.command import Action, verb
from cardiolens.config.command_words import MODEL_OPTIONS
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.asking.ask_texts import asking_spec
from cardiolens.curation.probes.blind_probes import probe
from cardiolens.curation.questions.draft_questions import Reader, questions
from cardiolens.curation.questions.glossary import with_glossary
from cardiolens.curation.questions.model_gate import Gate, read_gate
from cardiolens.curation.questions.model_reader import read_with_model
from cardiolens.protocol.tasks.catalogue import load_catalogue


def draft(spec: QuestionsSpec, about_model: Sequence[str]) -> int:
    """Draft questions of reports and masks, or ask drafts without images."""
    if spec.draft is not None:
        return probe(spec, about_model)
    return questions(spec, *second_of(spec, about_model))


def second_of(spec: QuestionsSpec, words: Sequence[str]) -> tuple[Reader | None, Gate | None]:
    """Return the model that the words name as a second extractor, and the gate that it passed, if any."""
    if not words:
        if spec.gate is not None:
            raise InputError(f"gate={spec.gate}: is of a model; name it with model=..., or leave gate out")
        return None, None
    if spec.studies is None:
        raise InputError(
            "model: reads reports, and none are named; add reports=... and studies=..., or leave model out"
        )
    sweep = asking_spec(spec.studies, spec.stages / "model", spec.protocol, words)
    catalogue = with_glossary(load_catalogue(spec.protocol), spec.words)
    gate = None if spec.gate is None else read_gate(spec.gate, sweep, catalogue)
    return partial(read_with_model, sweep), gate


main = verb(__name__, __doc__, Action(QuestionsSpec, draft, about=MODEL_OPTIONS))
