"""Section on the questions of a sweep, each pooled over its models (17.6)."""

from cardiolens.score.claims import question_analysis
from cardiolens.show.page.columns import COUNTS, METHOD, SCOPE, scope_words
from cardiolens.show.page.difference_table import ESTIMATE, READINGS
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts
from cardiolens.show.page.pooled_differences import PooledDifference, pooled_differences

_COLUMNS = (
    Column("comparison", "comparison"),
    SCOPE,
    Column("line", "models"),
    *ESTIMATE,
    *COUNTS,
    METHOD,
)
_BAND = "Grey band: ±2 points."
_MODELS = " First line: the mean over all models, of equal weight; below it each model."
_GATES = " Tests of models are opened where that of the mean rejects."


def questions(facts: Facts) -> Section:
    """One forest of models under each answer."""
    title = "What do selection, budget, prompt and images do, over all models of this run?"
    differences = pooled_differences(facts)
    if not differences:
        absent = "No model was asked at two levels of a factor."
        return Section("questions", "Questions over all models", title, absent=absent)
    models = {difference.model for difference in differences if difference.model}
    if len(models) == 1:  # it is the mean over all models
        differences = [difference for difference in differences if not difference.model]
    pooled = "all models" if len(models) > 1 else "".join(models)
    records = [_record(difference, pooled) for difference in differences]
    table = Table.of("questions", "Questions over all models", _COLUMNS, records)
    chart = Chart(
        "questions-chart",
        "Difference over all models, and of each",
        "forest",
        table,
        choices=("comparison", "scope"),
        note=f"{_BAND}{_MODELS}{_GATES}" if len(models) > 1 else _BAND,
    )
    findings = facts.analysis(question_analysis.NAME).findings
    return Section("questions", "Questions over all models", title, findings, (chart,))


def _record(difference: PooledDifference, pooled: str) -> dict[str, object]:
    equivalence = difference.by_metric.get("primary.equivalence", {})
    return {
        **difference.row,
        "comparison": difference.comparison,
        "scope": scope_words(difference.scope),
        "line": difference.model or pooled,
        "low_90": equivalence.get("low"),
        "high_90": equivalence.get("high"),
        "reading": READINGS[difference.reading],
        "adjusted_p": difference.evidence.adjusted_p,
    }
