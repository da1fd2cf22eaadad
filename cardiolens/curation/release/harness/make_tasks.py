"""Make task folders for lmms-eval and VLMEvalKit of a release that has arrived."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import read_words
from cardiolens.config.released import INDEX, read_index, released_options
from cardiolens.curation.release.harness.lmms_eval_folder import LMMS_EVAL, write_lmms_eval
from cardiolens.curation.release.harness.vlmevalkit_folder import VLMEVALKIT, write_vlmevalkit
from cardiolens.curation.release.hub_head import split_of
from cardiolens.curation.release.question_table import Row, rows_by_study, write_rows
from cardiolens.curation.release.release_contents import read_contents
from cardiolens.curation.release.verify import differences
from cardiolens.protocol.tasks.catalogue import OPEN, load_catalogue
from cardiolens.protocol.tasks.questions import Question

_CANARY = re.compile(r"cardiolens canary [0-9a-f-]{36}")


class Harness(Spec):
    """The words that make task folders of a release."""

    harness: GivenPath  # the release
    out: GivenPath  # a new folder


def make_tasks(words: Sequence[str]) -> int:
    """Write the task folders and return 0; InputError for what is no release, or has nothing to ask."""
    spec = read_words(Harness, words)
    if spec.out.exists() and (not spec.out.is_dir() or any(spec.out.iterdir())):
        raise InputError(f"out={spec.out}: is not an empty folder; give a new one")
    if spec.out.resolve().is_relative_to(spec.harness.resolve()):
        raise InputError(f"out={spec.out}: lies in the release; name a place elsewhere")
    options = released_options(spec.harness)
    for difference in differences(spec.harness):
        raise InputError(f"harness={spec.harness}: {difference}; ask for the release anew")
    catalogue = load_catalogue(options["protocol"])
    given = read_contents(spec.harness, catalogue)
    scored = replace(given, cohorts={name: _scored(given.cohorts[name]) for name in given.cohorts})
    canary = _canary(spec.harness)
    with disk.draft_folder(spec.out) as draft:
        tables = {}
        for name in given.cohorts:
            folder = draft / LMMS_EVAL / "data" / split_of(name)
            rows = rows_by_study(name, scored, catalogue, canary=canary, frames=True)
            asked = write_rows(folder, _that_show(rows), frames=True)
            _tell(name, given.cohorts[name], len(scored.cohorts[name]), asked)
            if asked:
                tables[split_of(name)] = folder
        if not tables:
            raise InputError(f"harness={spec.harness}: has no choice question with a told answer and frames")
        write_lmms_eval(draft / LMMS_EVAL, options["name"], tables, canary)
        write_vlmevalkit(draft / VLMEVALKIT, options["name"], tables, canary)
    say(f"release: {spec.out}; each folder in it has a README that says how it is used")
    return 0


def _canary(release: Path) -> str:
    """Return the canary of a release; it goes into YAML, so that nothing but its own form is taken."""
    canary = str(read_index(release).get("canary"))
    if not _CANARY.fullmatch(canary):
        raise InputError(f"harness={release}: the canary in its {INDEX} is none of cardiolens; do not use it")
    return canary


def _scored(questions: Sequence[Question]) -> list[Question]:
    """Return the questions that a harness can score: a choice, with an answer."""
    return [question for question in questions if question.answer_type not in OPEN and not question.withheld]


def _that_show(groups: Iterable[list[Row]]) -> Iterator[list[Row]]:
    """Yield the rows that show frames; studies without any are left out."""
    for rows in groups:
        if visible := [row for row in rows if row["frames"]]:
            yield visible


def _tell(cohort: str, given: Sequence[Question], scored: int, asked: int) -> None:
    """Say how many questions of a cohort are asked, and how many are left out for which reason."""
    reports = sum(one.answer_type == "report" for one in given)
    left_out = {
        "reports": reports,
        "answers withheld": len(given) - reports - scored,
        "without frames": scored - asked,
    }
    told = ", ".join(f"{count} {why}" for why, count in left_out.items() if count)
    say(f"{cohort}: {asked} questions{f'; left out: {told}' if told else ''}")
