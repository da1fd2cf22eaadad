"""Answers pooled over models, and the effect of each model behind them, as the page shows them (17.6)."""

import math
from dataclasses import dataclass

from cardiolens.score.claims import question_analysis, sentences
from cardiolens.score.claims.evidence_analysis import Evidence, Rows, places
from cardiolens.score.run_results.run_analyses import AnalysisRow
from cardiolens.score.statistics.pooled_questions import DOUBLING, PREFIX
from cardiolens.show.page.difference_table import Reading
from cardiolens.show.page.page_data import Facts


@dataclass(frozen=True, slots=True)
class PooledDifference:
    """What one level of a factor does in place of another on a tier: over all models, or in one of them."""

    factor: str
    ours: str
    theirs: str
    model: str  # empty: all
    scope: str
    by_metric: Rows

    @property
    def row(self) -> AnalysisRow:
        return self.by_metric["primary"]

    @property
    def is_slope(self) -> bool:
        """Return whether it is the change per doubling of the budget, which is only described."""
        return self.ours == DOUBLING

    @property
    def comparison(self) -> str:
        """The two levels that were subtracted, e.g. random − clinical."""
        if self.is_slope:
            return "K doubled"
        if self.factor == "control":
            return "with images − without" if self.theirs == "blind" else f"as asked − {self.theirs}"
        return f"{'K = ' if self.factor == 'budget' else ''}{self.ours} − {self.theirs}"

    @property
    def tier(self) -> str:
        return self.scope.replace(":", " ")

    @property
    def evidence(self) -> Evidence:
        """The test of the difference."""
        return Evidence.of(self.by_metric, "primary")

    @property
    def is_tested(self) -> bool:
        return not math.isnan(self.evidence.adjusted_p)

    @property
    def reading(self) -> Reading:
        """The conclusion that is allowed: a difference, equivalence, or neither."""
        if sentences.change("", "", self.row, self.evidence).side is not None:
            return "shown"
        equivalence = self.by_metric.get("primary.equivalence")
        if equivalence is None or math.isnan(Evidence.of(self.by_metric, "primary.equivalence").adjusted_p):
            return "open"
        side = sentences.equivalence("", "", "", equivalence, self.by_metric).side
        return "equivalent" if side == "within" else "open"


def pooled_differences(facts: Facts) -> list[PooledDifference]:
    """Every question on every tier, over all models first, in the order in which they are asked."""
    differences = []
    for (ours, theirs, scope), rows in places(facts.analysis(question_analysis.NAME).rows).items():
        level, _, model = ours.removeprefix(PREFIX).partition(":")
        factor, _, ours_level = level.partition("=")
        theirs_level = theirs.partition("=")[2].removesuffix(f":{model}")
        if "primary" in rows:
            differences.append(PooledDifference(factor, ours_level, theirs_level, model, scope, rows))
    return sorted(differences, key=lambda difference: bool(difference.model))
