"""The declared comparison or question: tested alone at 5 % if no answer was there yet."""

from collections.abc import Sequence

from cardiolens.config.sweep_factors import PrimaryQuestionSpec, PrimarySpec
from cardiolens.score.statistics.comparisons import decided, reversed_row
from cardiolens.score.statistics.statistic import Row

FAMILY = "declared"


def when_declared(answered_before: int | None) -> str:
    """When something was declared, in words; by the number of answers that were there, None if not known."""
    if answered_before is None:
        return "declared when it is not known how many answers were there already"
    if not answered_before:
        return "declared before the run"
    answers = "1 answer was" if answered_before == 1 else f"{answered_before:,} answers were"
    return f"declared when {answers} there already"


def declared_row(
    primary: PrimarySpec | PrimaryQuestionSpec, answered_before: int | None, rows: Sequence[Row]
) -> Row | None:
    """The row of what was declared, in its direction; None if no row of the run tests it.

    It has its own tests if no answer was there when it was declared; else it is one of its family.
    """
    of_tier = (row for row in rows if (row["metric"], row["tier"]) == ("primary", primary.tier))
    declared = next((row for row in of_tier if _is_declared(primary, row)), None)
    if declared is None or declared["p"] is None:
        return None
    if isinstance(primary, PrimarySpec) and declared["level"] != primary.model:
        declared = reversed_row(declared)
    row = declared | {"family": FAMILY}
    if answered_before == 0:
        row |= {f"{test}_adjusted": row[test] for test in ("p", "within_p", "beyond_p")}
        row |= {"adjustment": "alone", "family_size": 1}
    return row | decided(row)


def _is_declared(primary: PrimarySpec | PrimaryQuestionSpec, row: Row) -> bool:
    """Return whether a row compares both models, or is the mean over models of the declared level."""
    if isinstance(primary, PrimarySpec):
        is_headline = row["factor"] == "model" and row["arm_id"] is None and not row["simulated"]
        return is_headline and {row["level"], row["versus"]} == {primary.model, primary.versus}
    level = row["versus"] if primary.factor == "control" else row["level"]
    is_named = primary.factor == "budget" or level == primary.level  # of budgets no level is named
    return is_named and row["factor"] == primary.factor and row["n_models"] is not None
