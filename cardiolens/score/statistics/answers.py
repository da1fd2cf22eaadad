"""Answers to all requests, judged or not, of one arm and of every arm."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import pyarrow as pa

from cardiolens.score.statistics.items import (
    Bools,
    Ints,
    Items,
    Reports,
    Vocabulary,
    hospital_codes,
    items,
    reports,
)
from cardiolens.score.statistics.verdict_rows import SpilledMapping, Verdicts, by_arm, judged_shares


@dataclass(frozen=True, slots=True)
class Answers:
    """Rows of a table of verdicts; `patient` indexes the sorted patients of the whole table."""

    items: Items
    reports: Reports

    @staticmethod
    def of(verdicts: pa.Table, vocabulary: Vocabulary | None = None) -> "Answers":
        """Read all rows of a table; for a part of a table, pass the vocabulary of the whole."""
        vocabulary = vocabulary or Vocabulary.of(verdicts)
        return Answers(items(verdicts, vocabulary), reports(verdicts, vocabulary))

    @property
    def judged(self) -> "Answers":
        """The judged rows."""
        return self.where(self.items.judged, self.reports.judged)

    def where(self, items: Bools, reports: Bools) -> "Answers":
        """Some of the items and of the reports."""
        return Answers(self.items.where(items), self.reports.where(reports))

    def common_with(self, other: "Answers", *, out: bool = False) -> "Answers":
        """The rows with a question that occurs in the other answers too, or with `out` all others."""
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
class ArmAnswers:
    """The answers of each arm; codes of questions, requests and entity sets are shared across arms."""

    asked: Mapping[str, Answers]  # judged or not
    arms: list[str]  # with a judged row, sorted
    patients: list[str]  # of all arms, sorted
    shares: Mapping[tuple[str, str], float]  # of the items that were judged, by arm and scope
    hospitals: Ints | None = None  # codes of the patients' hospitals, where these are random as well

    @staticmethod
    def of(
        verdicts: pa.Table | Verdicts, hospitals: Mapping[str, str] = MappingProxyType({})
    ) -> "ArmAnswers":
        """Read the answers from verdicts, one arm at a time; `hospitals` are those of patients, if known."""
        vocabulary = Vocabulary.of(verdicts)
        asked = SpilledMapping[str, Answers]()
        judged_arms = []
        for arm, rows in by_arm(verdicts):
            answers = asked[arm] = Answers.of(rows, vocabulary)
            if answers.items.judged.any() or answers.reports.judged.any():
                judged_arms.append(arm)
        shares, codes = judged_shares(verdicts), hospital_codes(vocabulary.patients, hospitals)
        return ArmAnswers(asked, sorted(judged_arms), vocabulary.patients, shares, codes)

    def judged(self, arm: str) -> Answers:
        """The judged rows of an arm."""
        return self.asked[arm].judged
