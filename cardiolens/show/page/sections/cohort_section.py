"""Section on what scores depend on: parts of the cohort, subgroups, wordings, seeds and single items."""

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.show.page.columns import (
    COUNTS,
    ESTIMATE,
    HIGH,
    LOW,
    METHOD,
    SCOPE,
    VALUE,
    estimate_cells,
    scope_words,
    starred,
    subtask_words,
)
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_PARTS = (Column("part", "cohort part"), Column("line", "model"), SCOPE, *ESTIMATE, *COUNTS, METHOD)
_SUBGROUPS = (
    *(Column("attribute", "attribute"), Column("subgroup", "subgroup"), Column("model", "model"), SCOPE),
    *(VALUE, LOW, HIGH, *COUNTS, METHOD),
)
_SHIFTS = (
    *(Column("part", "part"), Column("subtask", "subtask")),
    Column("value", "shift of true answers", "score"),
)
_SPREAD = (
    *(Column("model", "model"), SCOPE, Column("factor", "varied")),
    *(Column("levels", "levels", "count"), Column("settings", "settings", "count")),
    *(Column("mean_range", "mean range", "score"), Column("max_range", "largest range", "score")),
)
_DIFFICULTY = (
    *(Column("subtask", "subtask"), Column("n_items", "items", "count")),
    *(Column("readers", "readers", "count"), Column("difficulty", "right, mean over readers", "score")),
    *(Column("hardest", "hardest item", "score"), Column("easiest", "easiest item", "score")),
    *(Column("never_right", "never right", "count"), Column("discrimination", "discrimination", "number")),
    Column("n_discrimination", "items that discriminate", "count"),
)
_FACTORS = {
    "protocol": "slice selection",
    "seed": "seed of a selection",
    "budget": "slice budget",
    "prompt": "prompt",
    "wording": "wording of the questions",
}


def dependence(facts: Facts) -> Section:
    """Headlines on parts and subgroups of the cohort, ranges by what was varied, and difficulty of items."""
    parts = _parts(facts)
    title = "Full cohort minus part"
    chart = Chart("cohort-differences-chart", title, "forest", parts, choices=("part", "scope"))
    tables = (_shifts(facts), _subgroups(facts), _spread(facts), _items(facts))
    question = "Would another part of the cohort, another seed, wording or item have told the same story?"
    return Section(
        "dependence",
        "What scores depend on",
        question,
        figures=(chart,) if parts.rows else (),
        tables=tuple(table for table in tables if table.rows),
        notes=(*_preparation(facts), *_one_seed(facts)),
    )


def _parts(facts: Facts) -> Table:
    records = [
        {
            **row,
            **estimate_cells(row),
            "part": row["versus"],
            "line": starred(row["model"], facts),
            "scope": scope_words(f"tier:{row['tier']}"),
        }
        for row in facts.findings
        if row["factor"] == "cohort" and row["metric"] == "primary"
    ]
    return Table.of("cohort_differences", "Full cohort minus part", _PARTS, records)


def _shifts(facts: Facts) -> Table:
    records = [
        {**row, "subtask": subtask_words(facts, row["scope"].removeprefix("subtask:"))}
        for row in facts.analysis("gold shifts")
    ]
    return Table.of("gold_shifts", "How far true answers shift", _SHIFTS, records)


def _subgroups(facts: Facts) -> Table:
    """Headlines by subgroup, where manifests name sex, age band, vendor, field strength or site."""
    records = [
        {
            **row,
            "model": starred(str(row.get("arm_id") or "").removeprefix(PREFIX), facts),
            "scope": scope_words(row.get("scope") or ""),
        }
        for row in facts.analysis("subgroups")
    ]
    return Table.of("subgroups", "Headline scores by subgroup of patients", _SUBGROUPS, records)


def _spread(facts: Facts) -> Table:
    records = [
        {
            **row,
            "scope": scope_words(row["scope"]),
            "factor": _FACTORS[row["factor"]],
            "model": starred(row["model"], facts),
        }
        for row in facts.analysis("spread")
    ]
    return Table.of("spread", "Range of scores over what was varied, all else held", _SPREAD, records)


def _items(facts: Facts) -> Table:
    """Items by subtask; which ones nobody got right stands in analyses.json, since their ids name studies."""
    records = [
        {**row, "subtask": subtask_words(facts, row["scope"].removeprefix("subtask:"))}
        for row in facts.analysis("item difficulty")
    ]
    return Table.of("item_difficulty", "Difficulty of items over readers", _DIFFICULTY, records)


def _preparation(facts: Facts) -> tuple[str, ...]:
    """Warnings of study preparation, and what it inferred where study.json declares nothing."""
    counts: dict[str, int] = {}
    for manifest in facts.manifests:
        preparation = manifest.get("preparation", {})
        for kind, words in (("warnings", "To be looked at"), ("found", "Found in the pixels")):
            for message, n_studies in preparation.get(kind, {}).items():
                counts[f"{words}: {message}"] = max(n_studies, counts.get(f"{words}: {message}", 0))
    entries = sorted(counts.items(), key=lambda entry: (not entry[0].startswith("To be"), entry[0]))
    return tuple(f"{message} ({counted(n_studies, 'study')})" for message, n_studies in entries)


def _one_seed(facts: Facts) -> list[str]:
    """A note on random selections that were drawn once."""
    seeds: dict[str, set[str]] = {}
    for arm in facts.arms:
        if "@" in arm.selector:
            seeds.setdefault(arm.protocol, set()).add(arm.selector)
    once = sorted(min(selections) for selections in seeds.values() if len(selections) == 1)
    return [f"{', '.join(once)}: drawn with one seed; +experiment=seeds draws five."] if once else []
