"""Answers per arm, loaded one arm at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

import pyarrow as pa

from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.hospital_codes import hospital_codes
from cardiolens.score.statistics.items import Ints
from cardiolens.score.statistics.name_codes import Vocabulary
from cardiolens.score.statistics.outcomes import judged_shares
from cardiolens.score.statistics.spilled_mapping import SpilledMapping
from cardiolens.score.statistics.verdict_rows import Verdicts, by_arm, cohort
from cardiolens.storage.schemas import VERDICTS


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
