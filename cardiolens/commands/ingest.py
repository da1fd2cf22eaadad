"""`python -m cardiolens.ingest source=... out=...`: make studies of an export of DICOM or NIfTI.

A public set that a layout names also gets its questions and a manifest of digests. `init out=...` writes
skeletons of study.json and questions.jsonl for NIfTI files instead.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.console import say, shown_word
from cardiolens.base.digest import digest_of
from cardiolens.commands.command import Action, verb
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.import_run import ingest_by_layout
from cardiolens.curation.ingest.manifest_draft import Words, write_skeletons
from cardiolens.curation.questions.set_questions import (
    SetQuestions,
    write_all_questions,
    write_set_questions,
)
from cardiolens.curation.release.public_set import CARD_NAME, write_set


def ingest(spec: IngestSpec) -> int:
    """Import an export; of a public set also write its questions and its manifest."""
    status, layout = ingest_by_layout(spec)
    if layout is not None:
        drafted = write_set_questions(spec.out, layout)
        write_all_questions(spec.out)
        report_set(spec.out, drafted, write_set(spec.source, spec.out, layout))
    return status


def report_set(out: Path, questions: SetQuestions, manifest: Mapping[str, Any]) -> None:
    """Print what a public set can ask, what its labels leave open, and its digests."""
    groups = ", ".join(f"{count} {group}" for group, count in sorted(questions.by_group.items()))
    say(f"groups: {groups or 'none, since no study came in'}")
    for group, why in sorted(questions.unanswered.items()):
        say(f"no diagnosis is asked of group {group}: {why}")
    for problem in questions.problems[:3]:
        say(f"masks cannot be used: {problem}")
    subtasks = Counter(line["subtask"] for line in questions.lines)
    counts = ", ".join(f"{count} {subtask}" for subtask, count in sorted(subtasks.items()))
    say(f"{len(questions.lines)} questions, none verified (label of the set): {counts or 'none'}")
    say(f"set.json: {len(manifest['files'])} files, digest {digest_of(manifest['files'])}")
    say(f"card: {out / CARD_NAME}")
    if questions.lines:
        say(
            "next: python -m cardiolens.sweep +experiment=public_hearts "
            f"{shown_word('dataset.studies', out / 'studies')} "
            f"{shown_word('dataset.questions', out / 'questions' / 'questions.jsonl')}"
        )
    else:
        say(f"next: python -m cardiolens.confirm {shown_word('out', out)}, for what waits; then ingest again")


main = verb(
    __name__,
    __doc__,
    Action(IngestSpec, ingest),
    Action(Words, lambda words: write_skeletons(words.out), "init"),
)
