"""Goldens of what is printed: verdicts, scores and comparisons of simulated runs."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from page_run import finished, full_spec
from small_cohort import make_cohort

from bench.claims import BETTER, arms_of, compared, verdicts
from cardiolens.storage import schemas, tables
from tests.golden.planned import digest

NUMBERS = ("value", "low", "high", "n_items", "n_patients")
COLUMNS = (
    *("difference", "low", "high", "low_90", "high_90", "p", "p_adjusted", "within_p", "within_p_adjusted"),
    *("beyond_p", "beyond_p_adjusted", "n_patients", "n_items", "n_same_request", "n_dropped", "low_bound"),
    *("high_bound", "read_difference", "n_read", "spread", "next_low", "next_high", "n_models_above"),
)


def page(folder: Path) -> dict[str, Any]:
    """Verdicts, scores and comparisons of the fixture of the page's tests: two readers, sixteen arms."""
    run = finished(full_spec(make_cohort(folder, 24)))
    judged = tables.read(run.verdicts, schemas.VERDICTS)
    order = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]
    rows = judged.select(["arm_id", "qa_id", "channel", "parse_status", "parsed", "gold"]).sort_by(order)
    scores = tables.read(run.scores, schemas.SCORES).to_pylist()
    comparisons = tables.read(run.comparisons, schemas.COMPARISONS).to_pylist()
    return {"verdicts": digest(rows.to_pylist()), **results(scores, comparisons)}


def claims(_: Path) -> dict[str, Any]:
    """Scores and decisions of `bench/claims.py`: three experiments without effect, three with one."""
    null = arms_of(("clinical", "random@1", "kcenter"), ("8", "32"), ("standard", "reasoning"))
    power = arms_of(("clinical",), ("16",), ("standard", "reasoning"))
    models = arms_of(("clinical", "random@1"), ("8", "16"), ("standard",), ("a", "b", "c"))
    made = {}
    for name, arms, patients, better in (
        ("null", null, 40, 0.0),
        ("power", power, 80, BETTER),
        ("models", models, 40, 0.0),
    ):
        for seed in range(3):
            rows = verdicts(arms, patients, np.random.default_rng([3, seed]), better=better)
            made[f"{name} {seed}"] = results(*compared(arms, rows, 60, 200))
    return made


def results(rows: list[dict[str, Any]], comparisons: list[dict[str, Any]]) -> dict[str, Any]:
    """Sums of the scores of single arms and of comparisons by metric, tier scores in full, and decisions."""
    sums: dict[str, list[float]] = {}
    for row in rows:
        key = [row[name] for name in ("metric", "scope", "arm_id")]
        add(sums.setdefault(row["metric"], [0.0] * 6), key, [row[name] for name in NUMBERS])
    tiers = sorted(
        [row["scope"], row["arm_id"], *(_plain(row[name]) for name in NUMBERS)]
        for row in rows
        if row["metric"] == "primary" and row["scope"].startswith("tier:")
    )
    compared: dict[str, dict[str, list[float]]] = {}
    decisions: Counter[str] = Counter()
    for row in comparisons:
        metric = f"{row['metric']} of cohorts" if row["factor"] == "cohort" else row["metric"]
        for name in COLUMNS:
            if row[name] is not None:
                sums_of = compared.setdefault(metric, {}).setdefault(name, [0.0, 0.0])
                add(sums_of, place(row), [row[name]])
        decisions[f"{metric}: {row['decision']}, {row['margin']}"] += 1
    return {"sums": sums, "tiers": tiers, "compared": compared, "decisions": dict(sorted(decisions.items()))}


def place(row: dict[str, Any]) -> list[str]:
    """Names of both sides, tier and metric of a comparison."""
    if row["arm_id"] is not None:
        sides = [row["arm_id"], row["versus_arm_id"]]
    elif row["factor"] in ("model", "tier"):
        prefix = "headline" if row["factor"] == "model" else "models"
        sides = [f"{prefix}:{row['level']}", f"{prefix}:{row['versus']}"]
    else:
        of_model = f":{row['model']}" if row["model"] else ""
        sides = [f"pooled:{row['factor']}={level}{of_model}" for level in (row["level"], row["versus"])]
    return [*sides, f"tier:{row['tier']}", row["metric"]]


def add(sums: list[float], key: list[Any], values: list[Any]) -> None:
    """Add defined values with a weight that their place decides, and count them."""
    numbers = [float(value) for value in values if value is not None]
    if len(numbers) == len(values) and all(np.isfinite(numbers)):
        weight = 1 + int(digest(key), 16) % 997 / 997
        for place, number in enumerate((*numbers, 1.0)):
            sums[place] += weight * number


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
