"""The declared comparison of two models: tested alone at 5 % if no answer was there yet (16.12, 17.4)."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from cardiolens.score.claims import sentences
from cardiolens.score.claims.analysis import Analysis
from cardiolens.score.claims.evidence_analysis import Evidence, Rows, alone
from cardiolens.score.claims.sentences import Finding
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.score.statistics.multiple_testing import HOLM_P, SWAP_P
from cardiolens.score.statistics.read_in_both import READ_IN_BOTH, ReadInBoth
from cardiolens.score.statistics.rows import Row

NAME = "declared comparison"
_METRICS = (
    *("primary", f"primary.{SWAP_P}", f"primary.{HOLM_P}", "primary.bounds"),
    f"primary.{READ_IN_BOTH}",
)


@dataclass(frozen=True, slots=True)
class Declaration:
    """The time of a declaration, as the number of answers that were there; None if not known."""

    answered_before: int | None = 0

    @property
    def is_beforehand(self) -> bool:
        """Return whether it was declared before any answer could be looked at."""
        return self.answered_before == 0

    @property
    def when(self) -> str:
        """When it was declared, in words."""
        if self.answered_before is None:
            return "declared when it is not known how many answers were there already"
        if self.is_beforehand:
            return "declared before the run"
        answers = "1 answer was" if self.answered_before == 1 else f"{self.answered_before:,} answers were"
        return f"declared when {answers} there already"

    def evidence(self, rows_by_metric: Rows, metric: str) -> Evidence:
        """The evidence on a metric: its own test if nothing was there, else that of its family."""
        if self.is_beforehand:
            return alone(rows_by_metric, metric)
        return replace(Evidence.of(rows_by_metric, metric), declared=self.when)


@dataclass(frozen=True, slots=True)
class DeclaredComparison:
    """The headlines of two models on a tier."""

    model: str
    versus: str
    tier: int
    declaration: Declaration


def declared_comparison(
    scores: Sequence[Row], comparison: DeclaredComparison, simulated: Collection[str] = ()
) -> Analysis:
    """Test the declared difference: alone, without adjustment for others, if no answer was there before it.

    Else it is one comparison of its family, and the sentence says when it was declared.
    """
    rows_by_metric = _rows(scores, comparison)
    subject = f"the headline score on tier {comparison.tier}"
    cause = f"Model {comparison.model} instead of {comparison.versus}"
    if "primary" not in rows_by_metric or f"primary.{SWAP_P}" not in rows_by_metric:
        sentence = f"{cause} was declared, and the run has no headline of both: nothing can be said."
        return Analysis(NAME, list(rows_by_metric.values()), (Finding(None, sentence),))
    if {comparison.model, comparison.versus} & set(simulated):
        sentence = f"{cause} was declared, and a simulated reader is no model: nothing is claimed."
        return Analysis(NAME, list(rows_by_metric.values()), (Finding(None, sentence),))
    evidence = comparison.declaration.evidence(rows_by_metric, "primary")
    finding = sentences.change(cause, subject, rows_by_metric["primary"], evidence)
    return Analysis(NAME, list(rows_by_metric.values()), (finding,))


def _rows(scores: Sequence[Row], comparison: DeclaredComparison) -> Rows:
    """Rows of the comparison by metric, in the declared direction."""
    names = f"{PREFIX}{comparison.model}", f"{PREFIX}{comparison.versus}"
    rows_by_metric: dict[str, Row] = {}
    for row in scores:
        pair = row["arm_id"], row["versus_arm_id"]
        if row["scope"] == f"tier:{comparison.tier}" and row["metric"] in _METRICS:
            if pair == names:
                rows_by_metric[str(row["metric"])] = row
            elif pair == names[::-1]:
                rows_by_metric[str(row["metric"])] = _reversed(row)
    return rows_by_metric


def _reversed(row: Row) -> Mapping[str, object]:
    reversed_row = dict(row) | {"arm_id": row["versus_arm_id"], "versus_arm_id": row["arm_id"]}
    if str(row["metric"]).endswith("_p"):
        return reversed_row
    if str(row["metric"]).endswith(READ_IN_BOTH):
        read = ReadInBoth.of_row(row).reversed
        return reversed_row | {"value": read.value, "method": read.counts}
    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    return reversed_row | {"value": -value, "low": -high, "high": -low}
