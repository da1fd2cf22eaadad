"""Items of a review: questions in order of presentation, with batch, patient and evidence."""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.curation.questions.stage_files import read_lines
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue, Subtask
from cardiolens.protocol.tasks.question_evidence import FINDINGS
from cardiolens.protocol.tasks.questions import GivenQuestion, Question, given_questions
from cardiolens.study.manifest import Study, read_studies

Mode = Literal["verify", "read", "audit"]

_UNJUDGED = {"verification", "patient_id", "evidence_slices"}
_TRUTH = {"answer", "evidence", "origin", "reference"}
Quote = Mapping[str, Any]  # a passage of a report, and where it stands: text, start, end
BATCH = 200  # least items of a batch; a batch ends with a study
SECTIONS = "1-sections.jsonl"


@dataclass(frozen=True, slots=True)
class Item:
    """One question for review, or in an audit one reply to it."""

    question: Question
    record: Mapping[str, Any]  # line of the question file
    subtask: Subtask
    patient: str
    batch: str
    digest: str  # of all fields that a person judges; in an audit, the arm of the reply
    evidence: tuple[Quote, ...] = ()  # that supports the proposed answer
    report: str = ""  # from which the question was drafted
    reply: str | None = None  # of a model, in an audit
    is_cut: bool = False  # whether the reply ends at its token limit

    @property
    def qa_id(self) -> str:
        return self.question.qa_id

    @property
    def study(self) -> str:
        return self.question.study_id

    @property
    def key(self) -> tuple[str, str]:
        return self.qa_id, self.digest

    @property
    def is_multi(self) -> bool:
        return self.question.answer_type == "multi"

    @property
    def proposal(self) -> tuple[str, ...]:
        return tuple(sorted(self.question.answer))

    def is_legal(self, answer: Collection[str]) -> bool:
        """Return whether the question allows an answer."""
        keys, chosen = {option.key for option in self.question.options}, set(answer)
        if not 0 < len(chosen) == len(answer) or not chosen <= keys:
            return False
        return len(chosen) == 1 or (self.is_multi and not chosen & set(self.subtask.exclusive))


@dataclass(frozen=True)
class Items:
    """All items in order, and their studies."""

    items: tuple[Item, ...]
    studies: Mapping[str, Study]
    left_out: Mapping[str, int]  # number of questions left out, by reason


def read_items(path: Path, studies: Path, catalogue: Catalogue, mode: Mode) -> Items:
    """Read the questions of a file for one mode of review.

    Sort by study id, so that pictures stay in memory, then by the catalogue's order. Leave out report
    questions, which have no options, and in `verify` questions that are verified already.
    """
    study_rows = read_studies(studies, "studies")
    rows = list(given_questions(path, catalogue))
    chosen = [row for row in rows if row.question.answer_type not in OPEN]
    open_rows = [
        row for row in chosen if mode == "read" or row.question.verification.get("status") != "verified"
    ]
    if unknown := sorted({row.question.study_id for row in open_rows} - study_rows.keys()):
        raise InputError(
            f"{path}: {len(unknown)} of its studies are not in studies={studies}, e.g. {unknown[0]}; name "
            "the folder of the studies that it asks about"
        )
    rank = {name: place for place, name in enumerate(catalogue.subtasks)}
    open_rows.sort(key=lambda row: (row.question.study_id, rank[row.question.subtask], row.question.qa_id))
    if not open_rows:
        raise InputError(f"{path}: has no question for mode={mode}; give a file with drafts")
    batches = _batches([row.question.study_id for row in open_rows])
    items = [
        _item(row, catalogue, study_rows[row.question.study_id].manifest.patient_id, batch, mode)
        for row, batch in zip(open_rows, batches, strict=True)
    ]
    if mode == "verify":
        items = _with_evidence(items, path.parent)
    left_out = {"reports": len(rows) - len(chosen), "verified already": len(chosen) - len(open_rows)}
    return Items(tuple(items), study_rows, {name: count for name, count in left_out.items() if count})


def _item(given: GivenQuestion, catalogue: Catalogue, patient: str, batch: str, mode: Mode) -> Item:
    question = given.question
    truth = set() if mode == "verify" else _TRUTH  # a digest over the truth could reveal it
    fields = question.model_dump(mode="json", by_alias=True, exclude=_UNJUDGED | truth)
    return Item(question, given.record, catalogue[question.subtask], patient, batch, digest_of(fields))


def _batches(studies: Sequence[str]) -> Iterator[str]:
    """Yield each item's batch: whole studies up to BATCH items; a small rest joins the last batch."""
    starts = [0]
    for place, study in enumerate(studies):
        is_new = place > 0 and study != studies[place - 1]
        if is_new and place - starts[-1] >= BATCH and len(studies) - place >= BATCH:
            starts.append(place)
    for place in range(len(studies)):
        yield f"b{bisect_right(starts, place):02d}"


def _with_evidence(items: Iterable[Item], folder: Path) -> list[Item]:
    """Add quotes and reports from the stage files beside the drafts; an id without a quote is its text."""
    quotes = {
        (record["study_id"], item["id"]): {"text": item["quote"], "start": item["start"], "end": item["end"]}
        for path in sorted(folder.glob(FINDINGS))
        for record in read_lines(path)
        for item in record.get("items", ())
    }
    texts = {record["study_id"]: record["text"] for record in read_lines(folder / SECTIONS)}
    return [
        replace(
            item,
            evidence=tuple(
                quotes.get((item.study, name), {"text": name, "start": None, "end": None})
                for name in item.question.evidence
            ),
            report=texts.get(item.study, ""),
        )
        for item in items
    ]
