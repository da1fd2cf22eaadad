"""Section on prompting: differences of scores, and of how conservatively a model answers."""

from cardiolens.score.statistics.signal_detection import CRITERION, D_PRIME, SEVERITY_SHIFT
from cardiolens.show.page.columns import COUNTS, HIGH, LOW, METHOD, SCOPE, arm_cells, scope_words
from cardiolens.show.page.difference_table import difference_table, differences
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_METRICS = {
    CRITERION: "criterion (higher: calls less often abnormal)",
    D_PRIME: "d′ (normal against abnormal)",
    SEVERITY_SHIFT: "severity of grades",
    "mean_cardinality": "options picked",
    "precision": "precision",
    "recall": "recall",
}
_COLUMNS = (
    *(Column("model", "model"), Column("selector", "selection"), Column("budget", "K")),
    *(Column("comparison", "comparison"), SCOPE, Column("metric", "measure")),
    Column("value", "difference", "number"),
    Column("low", LOW.title, "number"),
    Column("high", HIGH.title, "number"),
    *(*COUNTS, METHOD),
)


def prompting(facts: Facts) -> Section:
    """Differences between prompts at every setting of the other factors."""
    title = "Does asking a model to work through a checklist change what it reads, or how carefully it calls?"
    comparisons = differences(facts, "prompt")
    if not comparisons:
        return Section(
            "prompting", "Prompting", title, absent="Only one prompt has judged answers in this run."
        )
    table = difference_table("prompt-differences", "Differences between prompts", comparisons, facts)
    chart = Chart(
        "prompt-differences-chart",
        "Score: one prompt minus the other",
        "forest",
        table,
        choices=("model", "scope", "control"),
        note="Grey band: ±2 points. Each line is one selection and budget.",
    )
    findings = facts.analysis("prompting").findings
    return Section("prompting", "Prompting", title, findings, (chart,), tables=(_conservatism(facts),))


def _conservatism(facts: Facts) -> Table:
    records = []
    for row in facts.of_pairs(list(_METRICS), "tier:"):
        ours, theirs = facts.arm(row["arm_id"]), facts.arm(row["versus_arm_id"])
        if ours and theirs and ours.prompt != theirs.prompt:
            names = {"comparison": f"{ours.prompt} − {theirs.prompt}", "metric": _METRICS[row["metric"]]}
            records.append({**row, **arm_cells(ours, facts.simulated), **names})
    records = [record | {"scope": scope_words(record["scope"])} for record in records]
    return Table.of("conservatism", "How conservatively a model calls", _COLUMNS, records)
