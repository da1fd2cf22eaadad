"""Solved questions of other patients that prompts with `shots` may show, and in which order.

If studies are of the cohort `train`, their patients alone lend questions, and none of theirs is asked.
Otherwise a question is lent to every patient but its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, islice, zip_longest
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.config.prompt import PromptSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.plan.planned_question import PlannedQuestion, SolvedExample
from cardiolens.protocol.tasks.catalogue import OPEN

TRAINING = "train"  # cohort of the patients who are kept for examples
_SPARE = 8  # further questions, for those whose study lacks the frames to show
_COLUMNS = ("qa_id", "study_id", "patient_id", "subtask", "question", "options", "answer")

_Lent = tuple[str, SolvedExample]  # patient, example
Row = Mapping[str, Any]


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
