"""Answers to all requests, judged or not, of one arm, of every arm, and of two arms side by side."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from cardiolens.base.errors import InputError
from cardiolens.score.statistics.items import Bools, Ints, Items, Reports, Vocabulary, items, reports
from cardiolens.score.statistics.verdict_rows import SpilledMapping, Verdicts, by_arm, cohort, judged_shares
from cardiolens.storage.schemas import VERDICTS

# From so many on, how hospitals differ can be estimated, if roughly; fewer speak of themselves alone.
FEWEST_HOSPITALS = 5


@dataclass(frozen=True, slots=True)
class Answers:
    """Rows of a table of verdicts; `patient` indexes the sorted patients of the whole table."""

    items: Items
    reports: Reports

    @staticmethod
    def of(
        verdicts: pa.Table,
        patients: list[str],
        vocabulary: Vocabulary | None = None,
        hospitals: Ints | None = None,
    ) -> "Answers":
        """Read all rows of a table; for a part of a table, pass the vocabulary of the whole.

        `hospitals` are codes of the patients' hospitals, where these are random as well.
        """
        given = patients, vocabulary or Vocabulary.of(verdicts), hospitals
        return Answers(items(verdicts, *given), reports(verdicts, *given))

    @property
    def judged(self) -> "Answers":
        """The judged rows."""
        return self.where(self.items.judged, self.reports.judged)

    def where(self, items: Bools, reports: Bools) -> "Answers":
        """Some of the items and of the reports."""
        return Answers(self.items.where(items), self.reports.where(reports))

    def of_patients(self, in_group: Bools) -> "Answers":
        """The rows of some patients of the cohort."""
        return self.where(in_group[self.items.patient], in_group[self.reports.patient])

    def common_with(self, other: "Answers", *, out: bool = False) -> "Answers":
        """The rows whose question occurs in the other answers too, or with `out` all others."""
        return self.among(other.items.question, other.reports.question, out=out)

    def among(self, items: Ints, reports: Ints, *, out: bool = False) -> "Answers":
        """The rows of the given questions, or with `out` of all others."""
        return self.where(
            np.isin(self.items.question, items, invert=out),
            np.isin(self.reports.question, reports, invert=out),
        )

    def joined_with(self, other: "Answers") -> "Answers":
        """Concatenate with the rows of another part of the table; the result is not sorted."""
        return Answers(self.items.joined_with(other.items), self.reports.joined_with(other.reports))

    def of_tier(self, tier: str) -> Items | Reports:
        """The rows behind a statistic of a tier (`tier:1`); of reports, those of fields."""
        if tier == "tier:2":
            return self.reports.of_fields
        return self.items.where(self.items.tier == int(tier[-1]))

    def __len__(self) -> int:
        return len(self.items) + len(self.reports)


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
    hospitals: Ints | None = None  # codes of the patients' hospitals, where these are random as well

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
            answers = answers_by_arm[arm] = Answers.of(rows, patients, vocabulary, codes)
            if answers.items.judged.any() or answers.reports.judged.any():
                judged_arms.append(arm)
        shares = judged_shares(verdicts)
        return ArmAnswers(verdicts, answers_by_arm, sorted(judged_arms), patients, shares, codes)

    def without_verdicts(self) -> "ArmAnswers":
        """A copy without the verdicts, for other processes that need the answers only."""
        return replace(self, verdicts=VERDICTS.empty_table())

    def judged(self, arm: str) -> Answers:
        """The judged rows of an arm; InputError if it has none."""
        if arm not in self.arms:
            raise InputError(f"arm {arm!r} has no judged item; compare two of {', '.join(self.arms)}")
        return self.answers[arm].judged

    def __getitem__(self, arm: str) -> Answers:
        return self.answers[arm]

    def __iter__(self) -> Iterator[str]:
        return iter(self.answers)

    def __len__(self) -> int:
        return len(self.answers)


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

    @staticmethod
    def of(answers: ArmAnswers, arm: str, versus: str) -> "Pair":
        """Take the common items of two arms; an arm without judged items is an InputError."""
        first, second = answers.judged(arm), answers.judged(versus)
        ours, theirs = first.common_with(second), second.common_with(first)
        return Pair(ours, theirs, len(ours) == len(first) and len(theirs) == len(second))

    @property
    def differing(self) -> tuple[Answers, Answers]:
        """Both arms on the items whose requests differ."""
        items = self.arm.items.request != self.versus.items.request
        reports = self.arm.reports.request != self.versus.reports.request
        return self.arm.where(items, reports), self.versus.where(items, reports)
