"""Settings of resampling that every statistic of a table of scores shares."""

from dataclasses import dataclass, field

from cardiolens.score.statistics.aggregates import arm_statistics
from cardiolens.score.statistics.answers import Answers
from cardiolens.score.statistics.field_scores import Scopes, field_statistics
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.report_references import Forms
from cardiolens.score.statistics.statistic import Key, Statistic
from cardiolens.score.statistics.swap_test import SWAPS, Coins, coins


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings shared by every statistic of a table of scores."""

    weights: Floats
    min_n: int
    seed: int
    forms: Forms = field(default_factory=dict)
    scopes: Scopes = field(default_factory=dict)  # of fields
    swaps: int = SWAPS
    of_hospitals: bool = False  # whole hospitals are resampled

    @property
    def method(self) -> str:
        """The bootstrap in words, for the `method` column."""
        kind = (
            "t interval, bootstrap of hospitals"
            if self.of_hospitals
            else "expanded percentile cluster bootstrap"
        )
        return f"{kind}, B={len(self.weights) - 1}, seed {self.seed}"

    @property
    def swap_method(self) -> str:
        """The swap test in words, for the `method` column."""
        return f"whole patients swapped between arms, {self.swaps} swaps, seed {self.seed}"

    @property
    def coins(self) -> Coins:
        """Which patients change arms in each swap."""
        return coins(self.patients, self.seed, self.swaps)

    @property
    def patients(self) -> int:
        """The number of patients in the cohort."""
        return len(self.weights[0])

    def statistics(self, answers: Answers) -> dict[Key, Statistic]:
        """Compute every statistic of the answers of one arm."""
        statistics = arm_statistics(answers, self.weights, self.min_n, self.seed, self.forms)
        return statistics | field_statistics(answers.items, self.weights, self.scopes)
