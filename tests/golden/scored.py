"""Goldens of what is printed: verdicts, scores, comparisons and sentences of simulated runs."""

from pathlib import Path
from typing import Any

import numpy as np
from page_run import finished, full_spec
from small_cohort import make_cohort

from bench.claims import BETTER, arms_of, findings, verdicts
from cardiolens.storage import schemas, tables
from tests.golden.planned import digest

EVIDENCE = ("metric", "scope", "arm_id", "versus_arm_id")
NUMBERS = ("value", "low", "high", "n_items", "n_patients")
RUN_FILES = ("analyses.json",)


def page(folder: Path) -> dict[str, Any]:
    """Verdicts, scores and answers of the fixture of the page's tests: two readers, sixteen arms."""
    run = finished(full_spec(make_cohort(folder, 24)))
    judged = tables.read(run.verdicts, schemas.VERDICTS)
    order = [(name, "ascending") for name in ("arm_id", "qa_id", "channel")]
    rows = judged.select(["arm_id", "qa_id", "channel", "parse_status", "parsed", "gold"]).sort_by(order)
    return {
        "verdicts": digest(rows.to_pylist()),
        **scores(tables.read(run.scores, schemas.SCORES).to_pylist()),
    }


def claims(_: Path) -> dict[str, Any]:
    """Sentences and scores of `bench/claims.py`: three experiments without effect, three with one."""
    null = arms_of(("clinical", "random@1", "kcenter"), ("8", "32"), ("standard", "reasoning"))
    power = arms_of(("clinical",), ("16",), ("standard", "reasoning"))
    made = {}
    for name, arms, patients, better in (("null", null, 40, 0.0), ("power", power, 80, BETTER)):
        for seed in range(3):
            rows = verdicts(arms, patients, np.random.default_rng([3, seed]), better=better)
            found, rows_of_scores = findings(arms, rows, 60, 200)
            said = sorted([one.verdict, one.sentence] for one in found)
            made[f"{name} {seed}"] = {
                "findings": said if name == "power" else digest(said),
                **scores(rows_of_scores),
            }
    return made


def scores(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The headline scores and comparisons of tiers in full, and by metric the sums of all others."""
    rows = sorted(rows, key=lambda row: [str(row[name]) for name in EVIDENCE])
    sums: dict[str, list[float]] = {}
    for row in rows:
        numbers = [float(row[name] or 0.0) for name in NUMBERS]
        if all(np.isfinite(numbers)):
            of = sums.setdefault(row["metric"], [0.0] * (len(NUMBERS) + 1))
            weight = 1 + int(digest([row[name] for name in EVIDENCE]), 16) % 997 / 997
            for place, number in enumerate((*numbers, 1.0)):
                of[place] += weight * number
    told = [
        [*(row[name] for name in EVIDENCE), *(_plain(row[name]) for name in NUMBERS)]
        for row in rows
        if row["metric"] in {"primary", "primary.swap_p", "primary.holm_p"}
        and str(row["scope"]).startswith("tier:")
    ]
    return {"sums": sums, "tiers": told}


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value
