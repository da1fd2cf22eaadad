"""Section on the questions of a sweep, each pooled over its models (17.6)."""

from cardiolens.score.claims import declared
from cardiolens.score.claims.sentences import SUBJECTS, sides
from cardiolens.show.page.columns import COUNTS, ESTIMATE, METHOD, SCOPE, estimate_cells, scope_words
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_COLUMNS = (
    *(Column("comparison", "comparison"), SCOPE, Column("metric", "measure"), Column("line", "models")),
    *(
        *ESTIMATE,
        Column("spread", "SD between models", "score"),
        Column("n_models_above", "above 0", "count"),
    ),
    *(*COUNTS, METHOD),
)
_BAND = "Grey band: ±2 points."
_MODELS = " First line: the mean over all models, of equal weight; below it each model."


def questions(facts: Facts) -> Section:
    """One forest of models under each answer."""
    rows = [
        row
        for row in facts.findings
        if row["factor"] not in ("model", "tier", "cohort") and row["family"] != declared.FAMILY
    ]
    models = {row["model"] for row in rows if row["model"]}
    if len(models) == 1:  # it is the mean over all models
        rows = [row for row in rows if not row["model"]]
    pooled = "all models" if len(models) > 1 else "".join(models)
    records = [
        {
            **row,
            **estimate_cells(row),
            "comparison": sides(row),
            "scope": scope_words(f"tier:{row['tier']}"),
            "metric": SUBJECTS[row["metric"]],
            "line": row["model"] or pooled,
        }
        for row in rows
    ]
    table = Table.of("questions", "Questions over all models", _COLUMNS, records)
    note = f"{_BAND}{_MODELS}" if len(models) > 1 else _BAND
    choices = ("comparison", "scope", "metric")
    chart = Chart("questions-chart", "Difference over all models", "forest", table, None, choices, note)
    title = "What do selection, slice budget, prompt and images do, over all models of this run?"
    figures = (chart,) if records else ()
    return Section("questions", "Questions over all models", title, figures=figures)
