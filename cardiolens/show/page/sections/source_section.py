"""Section on what scores move with: wordings, seeds and selections side by side."""

from cardiolens.score.claims import difficulty
from cardiolens.score.claims import score_ranges as spread
from cardiolens.show.page.columns import SCOPE, scope_words, subtask_words
from cardiolens.show.page.elements import Column, Section, Table
from cardiolens.show.page.page_data import Facts

_MODEL = Column("model", "model")
_SPREAD = (
    *(_MODEL, SCOPE, Column("factor", "varied")),
    *(Column("levels", "levels", "count"), Column("settings", "settings", "count")),
    *(Column("mean_range", "mean range", "score"), Column("max_range", "largest range", "score")),
)
_DIFFICULTY = (
    *(
        Column("subtask", "subtask"),
        Column("n_items", "items", "count"),
        Column("readers", "readers", "count"),
    ),
    Column("difficulty", "right, mean over readers", "score"),
    *(Column("hardest", "hardest item", "score"), Column("easiest", "easiest item", "score")),
    Column("never_right", "never right", "count"),
    Column("discrimination", "discrimination", "number"),
    Column("n_discrimination", "items that discriminate", "count"),
)
_FACTORS = {
    "protocol": "slice selection",
    "seed": "seed of a selection",
    "budget": "budget",
    "prompt": "prompt",
    "wording": "wording of the questions",
}


def sources(facts: Facts) -> Section:
    """Ranges of scores by what was varied, and items."""
    tables = [table for table in (_spread(facts), _items(facts)) if table.rows]
    notes = [*_one_seed(facts)]
    if any(table.name == "spread" for table in tables):
        notes.append(
            "Ranges are described, not tested. Seeds differ by chance alone: a range over selections that is "
            "no wider than that over seeds says nothing about selections."
        )
    if facts.analysis(difficulty.NEVER_RIGHT).rows:
        notes.append("Items that no reader got right are listed for review in analyses.json.")
    return Section(
        "sources",
        "What scores depend on",
        "Would other words, another seed or other items have told the same story?",
        tables=tuple(tables),
        notes=tuple(notes),
        absent="" if tables else "Nothing was varied, and no picked answer was judged.",
    )


def _one_seed(facts: Facts) -> list[str]:
    """A note on random selections that were drawn once."""
    seeds: dict[str, set[str]] = {}
    for arm in facts.arms:
        if "@" in arm.selector:
            seeds.setdefault(arm.protocol, set()).add(arm.selector)
    once = sorted(min(selections) for selections in seeds.values() if len(selections) == 1)
    if not once:
        return []
    return [
        f"{', '.join(once)}: drawn with one seed. What another seed would have given is not known from this "
        "run; +experiment=seeds draws five."
    ]


def _spread(facts: Facts) -> Table:
    records = [
        row
        | {
            "scope": scope_words(row["scope"]),
            "factor": _FACTORS[row["factor"]],
            "model": _model_name(str(row["model"]), facts),
        }
        for row in map(dict, facts.analysis(spread.NAME).rows)
    ]
    return Table.of("spread", "Range of scores over what was varied, all else held", _SPREAD, records)


def _items(facts: Facts) -> Table:
    """Items by subtask; which ones nobody got right stands in analyses.json, since their ids name studies."""
    rows = map(dict, facts.analysis(difficulty.BY_SUBTASK).rows)
    records = [
        row | {"subtask": subtask_words(facts, str(row["scope"]).removeprefix("subtask:"))} for row in rows
    ]
    return Table.of("item_difficulty", "Difficulty of items over readers", _DIFFICULTY, records)


def _model_name(model: str, facts: Facts) -> str:
    return f"{model}*" if model in facts.simulated else model
