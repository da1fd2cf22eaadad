"""Section on models by tier: raw scores, and skill beyond the best constant answer."""

import numpy as np

from cardiolens.score.claims.sentences import chance, signed
from cardiolens.score.statistics.headlines import PREFIX, why_no_headline
from cardiolens.score.statistics.hypothesis_tests import kendall
from cardiolens.show.page.columns import (
    ARM,
    COUNTS,
    ENDINGS,
    HIGH,
    LOW,
    METHOD,
    SCOPE,
    VALUE,
    arm_cells,
    row_cells,
    starred,
)
from cardiolens.show.page.elements import Chart, Column, Section, Table
from cardiolens.show.page.page_data import Facts

_MEASURES = {"primary": "score", "primary.skill": "skill", "primary.constant": "best constant answer"}
_MEASURE = Column("measure", "measure")


def landscape(facts: Facts) -> Section:
    """Headlines of models on every tier, and the scores of every arm."""
    headlines = _headlines(facts)
    charts = (
        Chart(
            "landscape-score",
            "Score",
            "by_model",
            headlines,
            where={"measure": "score"},
            note="Headline: slice budget 16, standard prompt; mean over seeds, then over selections.",
        ),
        Chart(
            "landscape-skill",
            "Skill: score beyond the best constant answer",
            "by_model_signed",
            headlines,
            where={"measure": "skill"},
            note="Zero: no better than always giving the best constant answer.",
        ),
    )
    scores = arm_scores(facts)
    no_headline = (why_no_headline(facts.arms),) if scores.rows else ()
    return Section(
        "landscape",
        "Landscape",
        "How well does each model read, tier by tier, and how much of it is beyond a constant answer?",
        figures=charts if headlines.rows else (),
        tables=(scores,),
        notes=_ranks(facts) if headlines.rows else no_headline,
    )


def _headlines(facts: Facts) -> Table:
    records = [
        row_cells(row)
        | {"model": starred(row["arm_id"].removeprefix(PREFIX), facts), "measure": _MEASURES[row["metric"]]}
        for row in facts.scores_of(tuple(_MEASURES), "tier:")
        if str(row["arm_id"]).startswith(PREFIX)
    ]
    columns = (Column("model", "model"), SCOPE, _MEASURE, VALUE, LOW, HIGH, *COUNTS, *ENDINGS, METHOD)
    return Table.of("headlines", "Headline of each model", columns, records)


def _ranks(facts: Facts) -> tuple[str, ...]:
    """Whether tiers 1 and 3 rank the models alike; none with fewer than two."""
    values: dict[str, dict[str, float]] = {}
    for row in facts.scores_of(["primary"], "tier:"):
        model = str(row["arm_id"]).removeprefix(PREFIX)
        if str(row["arm_id"]).startswith(PREFIX) and model not in facts.simulated:
            values.setdefault(model, {})[row["scope"]] = row["value"]
    pairs = np.array([[of.get("tier:1", np.nan), of.get("tier:3", np.nan)] for of in values.values()])
    defined = pairs.reshape(-1, 2)[~np.isnan(pairs.reshape(-1, 2)).any(axis=1)]
    tau, p = kendall(*defined.T)
    if np.isnan(p):
        return ()
    return (
        f"Ranks of models on tiers 1 and 3: Kendall's tau {signed(tau, 2)} over {len(defined)} models "
        f"({chance(p)}).",
    )


def arm_scores(facts: Facts) -> Table:
    """Scores and skill of every arm at tiers and sequences."""
    rows = [row for scope in ("tier:", "sequence:") for row in facts.scores_of(tuple(_MEASURES), scope)]
    records = [
        row_cells(row) | arm_cells(arm, facts.simulated) | {"measure": _MEASURES[row["metric"]]}
        for row in rows
        if (arm := facts.arm(row["arm_id"]))
    ]
    columns = (*ARM, SCOPE, _MEASURE, VALUE, LOW, HIGH, *COUNTS, *ENDINGS, METHOD)
    return Table.of("arm_scores", "Scores of every arm", columns, records)
