"""Answers to all requests, judged or not, of one arm, of every arm, and of two arms side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.score.statistics.items import Bools, Ints, Items, Reports, Vocabulary, items
from cardiolens.score.statistics.verdict_rows import SpilledMapping, Verdicts, by_arm, cohort, judged_shares
from cardiolens.storage.schemas import VERDICTS

# From so many on, how hospitals differ can be estimated, if roughly; fewer speak of themselves alone.
FEWEST_HOSPITALS = 5

Rows = TypeVar("Rows", Items, Reports)


@dataclass(frozen=True, slots=True)
class Answers:
    """Rows of a table of verdicts; `patient` indexes the sorted patients of the whole table."""

    items: Items
    reports: Reports

    @staticmethod
    def of(verdicts: pa.Table, patients: list[str]) -> "Answers":
        """Read the judged rows of a table."""
        return Answers.from_verdicts(verdicts, patients).where_judged()

    @staticmethod
    def from_verdicts(
        verdicts: pa.Table,
        patients: list[str],
        vocabulary: Vocabulary | None = None,
        hospitals: Ints | None = None,
    ) -> "Answers":
        """Read all rows of a table; for a part of a table, pass the vocabulary of the whole.

        `hospitals` are codes of the patients' hospitals, where these are random as well.
        """
        given = patients, vocabulary or Vocabulary.of(verdicts), hospitals
        return Answers(items(verdicts, *given), Reports.of(verdicts, *given))

    def where_judged(self, judged: bool = True) -> "Answers":
        """The judged rows, or the unjudged ones."""
        items, reports = self.items, self.reports
        return Answers(items.where(items.judged == judged), reports.where(reports.judged == judged))

    @property
    def arms(self) -> list[str]:
        """The arms that have a judged row, sorted."""
        return sorted({*map(str, np.unique(self.items.arm)), *map(str, np.unique(self.reports.arm))})

    def of_arm(self, arm: str) -> "Answers":
        """The rows of one arm."""
        items, reports = self.items, self.reports
        return Answers(items.where(_rows(items.arm, arm)), reports.where(_rows(reports.arm, arm)))

    def of_patients(self, in_group: Bools) -> "Answers":
        """The rows of some patients of the cohort."""
        items, reports = self.items, self.reports
        return Answers(items.where(in_group[items.patient]), reports.where(in_group[reports.patient]))

    def common_with(self, other: "Answers") -> "Answers":
        """The rows whose question occurs in the other answers too."""
        return self.among(other.items.question, other.reports.question)

    def among(self, items: Ints, reports: Ints, *, out: bool = False) -> "Answers":
        """The rows of the given questions, or with `out` of all others."""
        return Answers(
            self.items.where(np.isin(self.items.question, items, invert=out)),
            self.reports.where(np.isin(self.reports.question, reports, invert=out)),
        )

    def joined_with(self, other: "Answers") -> "Answers":
        """Concatenate with the rows of another part of the table; the result is not sorted."""
        return Answers(_concatenated(self.items, other.items), _concatenated(self.reports, other.reports))

    def in_scope(self, scope: str) -> Items | Reports:
        """The rows behind a statistic of this scope: `tier:1`, `sequence:cine`, `subtask:C10`."""
        kind, _, name = scope.partition(":")
        if scope == "tier:2":
            return self.reports
        if kind == "tier":
            return self.items.where(self.items.tier == int(name))
        if kind == "sequence":
            return self.items.where((self.items.tier == 1) & (self.items.sequence == name))
        of_subtask = self.items.where(self.items.subtask == name)
        return of_subtask if len(of_subtask) else self.reports.where(self.reports.subtask == name)

    def __len__(self) -> int:
        return len(self.items) + len(self.reports)


def _concatenated(first: Rows, second: Rows) -> Rows:
    pairs = {field.name: (getattr(first, field.name), getattr(second, field.name)) for field in fields(first)}
    columns = {name: pair for name, pair in pairs.items() if isinstance(pair[0], np.ndarray)}
    return replace(first, **{name: np.concatenate(pair) for name, pair in columns.items()})


def _rows(arms: NDArray[np.str_], arm: str) -> slice:
    """Slice of an arm in a sorted column."""
    return slice(int(np.searchsorted(arms, arm, "left")), int(np.searchsorted(arms, arm, "right")))


@dataclass(frozen=True, slots=True)
class ArmAnswers(Mapping[str, Answers]):
    """The answers of each arm, judged or not. Codes of questions, requests and entity sets are shared across
    arms.
    """

    verdicts: pa.Table | Verdicts
    answers: Mapping[str, Answers]
    arms: list[str]  # with a judged row, sorted
    patients: list[str]  # of all arms, sorted
    shares: Mapping[tuple[str, str], float]  # of the items that were judged, by arm and scope
    hospitals: Ints | None = None  # codes of the patients' hospitals, where these are random as well (17.12)

    @staticmethod
    def of(
        verdicts: pa.Table | Verdicts, hospitals: Mapping[str, str] = MappingProxyType({})
    ) -> "ArmAnswers":
        """Read the answers from verdicts, one arm at a time; `hospitals` are those of patients, if known."""
        patients, vocabulary = cohort(verdicts), Vocabulary.of(verdicts)
        codes = hospital_codes(patients, hospitals)
        answers_by_arm: SpilledMapping[Answers] = SpilledMapping()
        judged_arms = []
        for arm, rows in by_arm(verdicts):
            answers = answers_by_arm[arm] = Answers.from_verdicts(rows, patients, vocabulary, codes)
            if answers.items.judged.any() or answers.reports.judged.any():
                judged_arms.append(arm)
        shares = judged_shares(verdicts)
        return ArmAnswers(verdicts, answers_by_arm, sorted(judged_arms), patients, shares, codes)

    def without_verdicts(self) -> "ArmAnswers":
        """A copy without the verdicts, for other processes that need the answers only."""
        return replace(self, verdicts=VERDICTS.empty_table())

    @property
    def judged(self) -> "JudgedAnswers":
        """The judged rows of each arm that has at least one."""
        return JudgedAnswers(self)

    def __getitem__(self, arm: str) -> Answers:
        return self.answers[arm]

    def __iter__(self) -> Iterator[str]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)


@dataclass(frozen=True, slots=True)
class JudgedAnswers(Mapping[str, Answers]):
    """The judged rows of each arm that has at least one, sorted by arm."""

    answers: ArmAnswers

    def __getitem__(self, arm: str) -> Answers:
        if arm not in self.answers.arms:
            raise KeyError(arm)
        return self.answers[arm].where_judged()

    def __iter__(self) -> Iterator[str]:
        return iter(self.answers.arms)

    def __len__(self) -> int:
        return len(self.answers.arms)


def hospital_codes(patients: Sequence[str], hospitals: Mapping[str, str]) -> Ints | None:
    """A number for the hospital of each patient; None unless every patient's is known, and five or more."""
    names = [hospitals.get(patient) for patient in patients]
    distinct = sorted({name for name in names if name is not None})
    if None in names or len(distinct) < FEWEST_HOSPITALS:
        return None
    number = {name: at for at, name in enumerate(distinct)}
    return np.array([number[name] for name in names if name is not None], np.int64)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two arms on the items judged in both, in the same order."""

    arm: Answers
    versus: Answers
    complete: bool  # neither was judged on others
    answers: tuple[Answers, Answers]  # of both, judged or not

    @staticmethod
    def of(judged: Mapping[str, Answers], answers: Mapping[str, Answers], arm: str, versus: str) -> "Pair":
        """Take the common items of two arms; an arm without judged items is an InputError."""
        for name in (arm, versus):
            if name not in judged:
                raise InputError(f"arm {name!r} has no judged item; compare two of {', '.join(judged)}")
        first, second = judged[arm], judged[versus]
        ours, theirs = first.common_with(second), second.common_with(first)
        complete = len(ours) == len(first) and len(theirs) == len(second)
        return Pair(ours, theirs, complete, (answers[arm], answers[versus]))

    def in_scope(self, scope: str) -> tuple[Items | Reports, Items | Reports]:
        """The rows of both arms behind a statistic of this scope; of reports, those of fields."""
        return of_fields(self.arm.in_scope(scope)), of_fields(self.versus.in_scope(scope))

    @property
    def differing(self) -> tuple[Answers, Answers]:
        """Both arms on the items whose requests differ."""
        items = self.arm.items.request != self.versus.items.request
        reports = self.arm.reports.request != self.versus.reports.request
        return (
            Answers(self.arm.items.where(items), self.arm.reports.where(reports)),
            Answers(self.versus.items.where(items), self.versus.reports.where(reports)),
        )

    @property
    def same(self) -> int:
        """Number of items that have the same request in both arms."""
        return len(self.arm) - len(self.differing[0])


def of_fields(rows: Items | Reports) -> Items | Reports:
    """Drop the `text` channel of reports, which is not an item of its own."""
    return rows if isinstance(rows, Items) else rows.where(rows.channel == "fields")
