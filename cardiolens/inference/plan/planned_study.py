"""A study as it is planned: its questions, frames, and the solved questions of other patients before each.

If studies are of the cohort `train`, their patients alone lend questions, and none of theirs is asked.
Otherwise a question is lent to every patient but its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import PromptSpec
from cardiolens.protocol.dialogue.frame_requests import Offer
from cardiolens.protocol.prompts.case_prompts import CaseText
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.select.feature_store import Features
from cardiolens.protocol.select.route import Route
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.storage import tables
from cardiolens.storage.schemas import EXAMPLES
from cardiolens.study.shards import FrameDigest
from cardiolens.study.structure import StudyStructure

if TYPE_CHECKING:
    from hashlib import blake2b


FLAG = "shots:"  # flag of a request that shows examples, before their number
_FOLDER = "examples"


class FrameRef(NamedTuple):
    """A frame of a study, by its canonical index."""

    volume_id: str
    idx: int


@dataclass(frozen=True, slots=True)
class ShownExample:
    """A solved question in a prompt, with the frames that it shows of another patient's study."""

    qa_id: str
    study_id: str
    frames: tuple[Frame | FrameRef, ...]


TRAINING = "train"  # cohort of the patients who are kept for examples
_SPARE = 8  # further questions, for those whose study lacks the frames to show
_COLUMNS = ("qa_id", "study_id", "patient_id", "subtask", "question", "options", "answer")

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class PlannedQuestion:
    """A question as the plan sees it: words, route and study, but no answer."""

    qa_id: str
    study_id: str
    asked: AskedQuestion
    route: Route
    donor: str | None = None  # the study whose frames are shown under control other_patient
    wordings: tuple[str, ...] = ()  # alternative wordings of the question
    suggestions: Mapping[str, str] = field(default_factory=dict, hash=False)  # option by leading control
    told: CaseText | None = None  # text that prompts may include, for a case of images and text
    # solved questions that may be shown before it, by the seed that put them in order
    examples: Mapping[int, tuple["SolvedExample", ...]] = field(default_factory=dict, hash=False)

    @property
    def further_studies(self) -> Iterator[str]:
        """The other studies whose frames the question may show."""
        if self.donor is not None:
            yield self.donor
        for examples in self.examples.values():
            yield from (example.question.study_id for example in examples)

    def worded(self, wording: int) -> AskedQuestion:
        """Return the question in one of its wordings; 0 is the original."""
        return replace(self.asked, question=self.wordings[wording - 1]) if wording else self.asked


@dataclass(frozen=True, slots=True)
class SolvedExample:
    """A question of another patient with its answer, the only answers that a plan holds."""

    question: PlannedQuestion
    answer: tuple[str, ...]  # original option keys


Picture = tuple[str, tuple[int, int]]  # frame key; height and width as rendered


@dataclass(frozen=True, slots=True)
class FrameBlock:
    """The part of a prompt that all requests with the same list of frames share."""

    system: str
    text: str
    state: "blake2b"  # hash of the request key, up to the question
    sizes: tuple[tuple[int, int], ...]  # (height, width) of the frames as rendered
    rest: str = ""  # the text after the last frame
    counted: tuple[int, str] | None = None  # tokens up to the last frame; template text after the question
    n_videos: int = 0


@dataclass(frozen=True, slots=True)
class StudyFrames:
    """The frames of a study: structure, digests, and features by encoder if a selector needs them."""

    structure: StudyStructure
    digests: Mapping[tuple[str, int], FrameDigest]
    features: Features


@dataclass(frozen=True, slots=True)
class PlannedStudy:
    """Data shared by all requests that show one study."""

    structure: StudyStructure
    pictures: Mapping[tuple[str, int], Picture]  # by volume_id, idx
    features: Features
    digests: Mapping[tuple[str, int], FrameDigest]
    shown: dict[object, FrameBlock] = field(default_factory=dict)
    offers: dict[tuple[Frame, ...], Offer] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class View:
    """The frames that one request shows, and their study."""

    study_id: str | None  # None for a request that shows no frames
    study: PlannedStudy
    selection: Selection
    as_video: bool = False  # whether phases of a slice are shown as a video
    told: tuple[Frame, ...] = ()  # frames shown by their captions alone


class ExampleBlock(NamedTuple):
    """Solved examples of other patients: the text before a question's own frames, and their frames."""

    text: str = ""
    pictures: tuple[Picture, ...] = ()
    examples: tuple[ShownExample, ...] = ()


NO_EXAMPLES = ExampleBlock()  # of a prompt without examples


def flag_of(examples: Sequence[ShownExample]) -> str:
    """The flag of a request that shows these examples."""
    return f"{FLAG}{len(examples)}"


def has_examples(flags: Iterable[str]) -> bool:
    """Whether a request with these flags shows examples."""
    return any(flag.startswith(FLAG) for flag in flags)


def rows_of(request_key: str, examples: Sequence[ShownExample]) -> list[dict[str, object]]:
    """The examples of one request as rows of the table."""
    return [
        {
            "request_key": request_key,
            "example": number,
            "qa_id": example.qa_id,
            "study_id": example.study_id,
            "frames": [{"volume_id": frame.volume_id, "idx": frame.idx} for frame in example.frames],
        }
        for number, example in enumerate(examples)
    ]


def write_examples(part: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write the examples of a part of `requests`, if any, to a folder next to it."""
    if rows:
        tables.write_part(part.parent / _FOLDER, tables.from_rows(rows, EXAMPLES), EXAMPLES, part.name)


def read_part_examples(part: Path) -> Mapping[str, Sequence[ShownExample]]:
    """The examples of one part of `requests`, by request_key, in the order shown."""
    path = part.parent / _FOLDER / part.name
    if not path.exists():
        return {}
    order = [("request_key", "ascending"), ("example", "ascending")]
    by_request: dict[str, list[ShownExample]] = {}
    for row in tables.read_part(path, EXAMPLES).sort_by(order).to_pylist():
        examples = by_request.setdefault(row["request_key"], [])
        if row["example"] == len(examples):  # arms may ask the same, which is asked once
            frames = tuple(FrameRef(frame["volume_id"], frame["idx"]) for frame in row["frames"])
            examples.append(ShownExample(row["qa_id"], row["study_id"], frames))
    return by_request


_Lent = tuple[str, SolvedExample]  # patient, example


@dataclass(frozen=True, slots=True)
class Lending:
    """The solved questions of a run in the order in which examples are taken, by seed and subtask."""

    most: int  # examples before one question
    in_order: Mapping[tuple[int, str], Sequence[_Lent]]

    def to(self, subtask: str, patient_id: str | None) -> dict[int, tuple[SolvedExample, ...]]:
        """The examples that a question of a patient may show, by seed; never the patient's own."""
        return {
            seed: tuple(islice((example for owner, example in lent if owner != patient_id), self._offered))
            for (seed, lent_subtask), lent in self.in_order.items()
            if lent_subtask == subtask
        }

    @property
    def _offered(self) -> int:
        return self.most + _SPARE


def training_patients(spec: SweepSpec, volumes: pa.Table) -> frozenset[str]:
    """The patients kept for examples; none without examples, or without studies of the cohort `train`."""
    if not _with_shots(spec):
        return frozenset()
    columns = volumes.select(["patient_id", "cohort"]).to_pydict()
    pairs = zip(columns["patient_id"], columns["cohort"], strict=True)
    return frozenset(patient for patient, cohorts in pairs if TRAINING in (cohorts or ()))


def lending(
    spec: SweepSpec,
    questions: pa.Table,
    volumes: pa.Table,
    training: frozenset[str],
    as_planned: Callable[[Row], PlannedQuestion],
) -> Lending:
    """The solved questions on prepared studies: of the `training` patients, or of all if there are none.

    Reports are not lent: one patient's would stand in another's prompt, and in what shows it.
    """
    prompts = _with_shots(spec)
    if not prompts:
        return Lending(0, {})
    prepared = pa.array(sorted(set(volumes["study_id"].to_pylist())), pa.string())
    rows = [
        row
        for row in questions.filter(pc.is_in(questions["study_id"], prepared)).select(_COLUMNS).to_pylist()
        if row["answer"] and (not training or row["patient_id"] in training)
    ]
    rows.sort(key=lambda row: row["subtask"])
    by_subtask = {subtask: list(group) for subtask, group in groupby(rows, lambda row: str(row["subtask"]))}
    return Lending(
        max(prompt.shots for prompt in prompts),
        {
            (seed, subtask): [
                (row["patient_id"], SolvedExample(as_planned(row), tuple(row["answer"])))
                for row in _in_order(seed, lent)
            ]
            for seed in sorted({prompt.shots_seed for prompt in prompts})
            for subtask, lent in by_subtask.items()
        },
    )


def check_examples(spec: SweepSpec, questions: Sequence[PlannedQuestion], training: frozenset[str]) -> None:
    """InputError if no question of a run has as many examples as a prompt shows."""
    closed = [question for question in questions if question.asked.answer_type not in OPEN]
    for prompt in _with_shots(spec):
        most = max((len(question.examples.get(prompt.shots_seed, ())) for question in closed), default=0)
        if closed and most < prompt.shots:
            whose = f"patients of the cohort {TRAINING}" if training else "other patients"
            raise InputError(
                f"prompt {prompt.name} shows {prompt.shots} solved examples, and no subtask has more than "
                f"{most} answered questions of {whose}; give fewer shots, or prepare more studies"
            )


def _with_shots(spec: SweepSpec) -> list[PromptSpec]:
    return [prompt for prompt in spec.prompt if prompt.shots]


def _in_order(seed: int, rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a question of each patient by hash, so that answers take turns."""
    by_hash = sorted(rows, key=lambda row: digest_of([seed, "shots", row["qa_id"]]))
    first_of_patient = {row["patient_id"]: row for row in reversed(by_hash)}
    by_answer: dict[tuple[str, ...], list[Row]] = {}
    for row in reversed(first_of_patient.values()):
        by_answer.setdefault(tuple(row["answer"]), []).append(row)
    for turn in zip_longest(*by_answer.values()):
        yield from (row for row in turn if row is not None)
