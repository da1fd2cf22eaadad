"""Few-shot: solved questions of other patients, shown before the frames of a question.

If studies are of the cohort `train`, their patients alone lend questions, and are asked none.
Otherwise a question is lent to every patient but its own.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm
from cardiolens.inference.plan.frame_views import SHOWN, FrameSelector, Picture, View, as_displayed
from cardiolens.inference.plan.request import PlannedQuestion, ReplyForm, ShownExample
from cardiolens.protocol.dialogue.chain import FrameRef
from cardiolens.protocol.prompts.frames import CaptionLevel
from cardiolens.protocol.prompts.question import examples_block, solution
from cardiolens.protocol.prompts.template import question_block, template_for
from cardiolens.protocol.tasks.catalogue import OPEN, Catalogue
from cardiolens.storage import tables
from cardiolens.storage.schemas import EXAMPLES

TRAINING = "train"  # cohort of the patients who are kept for examples
_SEED = 2026  # of the order in which questions are lent
_SPARE = 8  # further questions, for those whose study lacks the frames to show
FLAG = "shots:"  # flag of a request that shows examples, before their number
_FOLDER = "examples"
_COLUMNS = ("qa_id", "study_id", "patient_id", "subtask", "question", "options", "answer")

Row = Mapping[str, Any]


def has_examples(flags: Iterable[str] | None) -> bool:
    """Whether a request with these flags shows examples."""
    return any(flag.startswith(FLAG) for flag in flags or ())


def write_examples(part: Path, examples: Mapping[str, Sequence[ShownExample]]) -> None:
    """Write the examples of a part of `requests`, by request_key, to a folder next to it."""
    rows: list[dict[str, object]] = [
        {
            "request_key": request_key,
            "example": number,
            "qa_id": example.qa_id,
            "study_id": example.study_id,
            "frames": [{"volume_id": frame.volume_id, "idx": frame.idx} for frame in example.frames],
        }
        for request_key, of_request in examples.items()
        for number, example in enumerate(of_request)
    ]
    if rows:
        tables.write_part(part.parent / _FOLDER, tables.from_rows(rows, EXAMPLES), EXAMPLES, part.name)


def read_example_frames(part: Path) -> Mapping[str, Sequence[tuple[str, FrameRef]]]:
    """The frames of the examples of one part of `requests`, by request_key: each with its study, in order."""
    path = part.parent / _FOLDER / part.name
    if not path.exists():
        return {}
    frames: dict[str, list[tuple[str, FrameRef]]] = {}
    for row in tables.read_part(path, EXAMPLES).to_pylist():  # as written: in the order shown
        of_request = frames.setdefault(row["request_key"], [])
        of_request += [(row["study_id"], FrameRef(**frame)) for frame in row["frames"]]
    return frames


def training_patients(spec: SweepSpec, volumes: pa.Table) -> frozenset[str]:
    """The patients kept for examples; none without examples, or without studies of the cohort `train`."""
    if not any(prompt.shots for prompt in spec.prompt):
        return frozenset()
    columns = volumes.select(["patient_id", "cohort"]).to_pydict()
    pairs = zip(columns["patient_id"], columns["cohort"], strict=True)
    return frozenset(patient for patient, cohorts in pairs if TRAINING in (cohorts or ()))


def lending(
    spec: SweepSpec,
    questions: pa.Table,
    volumes: pa.Table,
    training: frozenset[str],
    catalogue: Catalogue,
) -> Callable[[str, str | None], tuple[PlannedQuestion, ...]]:
    """Return a function from subtask and patient to the examples that may be shown, the first ones first.

    They are solved questions on prepared studies: of the `training` patients, or of all if there are none,
    but never of the patient. Reports are not lent: one patient's would stand in another's prompt, and in what
    shows it.
    """
    most = max(prompt.shots for prompt in spec.prompt)
    by_subtask: dict[str, list[Row]] = {}
    prepared = pc.is_in(questions["study_id"], pc.unique(volumes["study_id"]))
    for row in questions.filter(prepared).select(_COLUMNS).to_pylist() if most else ():
        if row["answer"] and (not training or row["patient_id"] in training):
            by_subtask.setdefault(row["subtask"], []).append(row)
    lent = {
        subtask: [
            (row["patient_id"], replace(PlannedQuestion.of(row, catalogue), answer=tuple(row["answer"])))
            for row in _in_order(rows)
        ]
        for subtask, rows in by_subtask.items()
    }

    def to(subtask: str, patient_id: str | None) -> tuple[PlannedQuestion, ...]:
        examples = (example for owner, example in lent.get(subtask, ()) if owner != patient_id)
        return tuple(islice(examples, most + _SPARE))

    return to


def check_examples(spec: SweepSpec, questions: Sequence[PlannedQuestion], training: frozenset[str]) -> None:
    """InputError if no question of a run has as many examples as a prompt shows."""
    closed = [question for question in questions if question.asked.answer_type not in OPEN]
    for prompt in spec.prompt if closed else ():
        most = max(len(question.examples) for question in closed)
        if most < prompt.shots:
            owners = f"patients of the cohort {TRAINING}" if training else "other patients"
            raise InputError(
                f"prompt {prompt.name} shows {prompt.shots} solved examples, and no subtask has more than "
                f"{most} answered questions of {owners}; give fewer shots, or prepare more studies"
            )


def _in_order(rows: Sequence[Row]) -> Iterator[Row]:
    """Yield a question of each patient by hash, so that answers take turns."""
    by_hash = sorted(rows, key=lambda row: digest_of([_SEED, "shots", row["qa_id"]]))
    first_of_patient = {row["patient_id"]: row for row in reversed(by_hash)}
    by_answer: dict[tuple[str, ...], list[Row]] = {}
    for row in reversed(first_of_patient.values()):
        by_answer.setdefault(tuple(row["answer"]), []).append(row)
    for turn in zip_longest(*by_answer.values()):
        yield from (row for row in turn if row is not None)


class Examples(NamedTuple):
    """Solved examples of other patients: the text before a question's own frames, and their frames."""

    text: str = ""
    pictures: tuple[Picture, ...] = ()
    shown: tuple[ShownExample, ...] = ()


class FewShot:
    """Shows examples before the requests of one model."""

    def __init__(
        self,
        frames: FrameSelector,
        level: CaptionLevel,
        form: ReplyForm,
        templates: Callable[[str], tuple[Path, ...]],  # by protocol
    ) -> None:
        self._frames, self._level, self._form, self._templates = frames, level, form, templates
        self._solutions: dict[tuple[str, tuple[str, ...]], Examples] = {}  # by arm and qa_ids on offer

    def before(self, question: PlannedQuestion, arm: Arm, arm_id: str) -> Examples:
        """Return the examples of an arm for a question; none for a report, or if there are too few."""
        if not arm.prompt.shots or question.asked.answer_type in OPEN:
            return Examples()
        lent = question.examples
        if arm.control == "other_patient":  # an example of the study that is shown would solve the question
            lent = tuple(example for example in lent if example.study_id != question.donor)
        key = arm_id, tuple(example.qa_id for example in lent)
        if key not in self._solutions:
            self._solutions[key] = self._first_with_frames(lent, arm)
        return self._solutions[key]

    def _first_with_frames(self, lent: Sequence[PlannedQuestion], arm: Arm) -> Examples:
        """Show the first of the lent questions that have frames, each as the arm shows a question."""
        solved, pictures, examples = list[tuple[str, str]](), list[Picture](), list[ShownExample]()
        shown_as = replace(arm, control="none") if arm.control == "other_patient" else arm
        for example in lent:
            if len(examples) == arm.prompt.shots:
                break
            view = self._frames.view(example, shown_as)
            if view.selection.skipped is None:
                solved.append(self._solved(example, arm, view))
                pictures += self._frames.pictures(view)
                examples.append(ShownExample(example.qa_id, example.study_id, view.selection.frames))
        if len(examples) < arm.prompt.shots:
            return Examples()
        return Examples(examples_block(solved), tuple(pictures), tuple(examples))

    def _solved(self, example: PlannedQuestion, arm: Arm, view: View) -> tuple[str, str]:
        """Return an example, without points to work through, and its reply: its answer has no reasons."""
        worded = as_displayed(example, arm)
        display = SHOWN.get(arm.control, "frames")
        template = template_for(worded, "standard", self._templates(worded.protocol), display=display)
        text = question_block(worded, len(view.frames), template, self._form.closing)
        reply = solution(worded, example.answer, self._form.format_of(worded, arm.prompt))
        return view.text(self._level) + text, reply
