"""Simulated readers through plan, engine and judge: each has the effect that it is made for (8.6, 14.5)."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_cohort import reader, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.conf_names import legal_names
from cardiolens.inference.engine.readers import READERS
from cardiolens.inference.models.identity import identify
from cardiolens.score.run_results.scoring import RunResults

pytestmark = pytest.mark.full

PATIENTS = 40

CHOICES = ["C06", "C10", "L01", "P01", "T01"]  # one right option
SETS = ["C02", "C16", "C17", "C18"]

Rows = dict[tuple[str, str], dict[str, Any]]


def rows_of(judged: RunResults, arm_id: str) -> Rows:
    """Rows of scores of one arm by metric and scope."""
    return {
        (row["metric"], row["scope"]): row for row in judged.scores.to_pylist() if row["arm_id"] == arm_id
    }


def read(root: Path, *models: dict[str, Any], **changes: Any) -> list[Rows]:
    """Rows of scores of each reader."""
    planned, judged = swept(sweep_spec(root, *models, **changes))
    return [rows_of(judged, arm.arm_id) for arm in planned.arms]


def test_the_oracle_scores_100_on_every_tier(root: Path) -> None:
    (found,) = read(root, reader("oracle"), limit=12)
    primary = {scope: row["value"] for (metric, scope), row in found.items() if metric == "primary"}
    assert {"tier:1", "tier:2", "tier:3"} <= set(primary)
    assert all(value == pytest.approx(100) for value in primary.values())


def test_a_constant_reader_has_collapse_index_one_wherever_classes_differ(root: Path) -> None:
    planned, judged = swept(sweep_spec(root, reader("constant", answer="A"), limit=12))
    found = rows_of(judged, planned.arms[0].arm_id)
    gold: dict[str, set[str]] = {}
    for row in judged.replies.verdicts.to_pylist():
        if row["answer_type"] in ("single", "ordinal"):
            gold.setdefault(row["subtask"], set()).add(row["gold"][0])
    several = [subtask for subtask, classes in gold.items() if len(classes) > 1]
    assert len(several) > 8
    assert {found["collapse_index", f"subtask:{subtask}"]["value"] for subtask in several} == {100}


def test_a_collapsing_reader_collapses_more_the_more_it_gives_up(root: Path) -> None:
    shares = (0.0, 0.3, 0.6, 1.0)
    models = [reader("collapse", f"collapse{share}", share=share) for share in shares]
    found = [
        [row["value"] for (metric, _), row in rows.items() if metric == "collapse_index" and row["n_items"]]
        for rows in read(root, *models, subtask=CHOICES)
    ]
    means = [float(np.nanmean(values)) for values in found]
    assert means[0] == 0
    assert means == sorted(set(means))
    assert means[-1] == 100


def test_a_conservative_reader_loses_recall_and_is_more_cautious_but_loses_no_precision(root: Path) -> None:
    models = [reader("conservative", f"conservative{drop}", drop=drop) for drop in (0.0, 0.3, 0.6)]
    found = read(root, *models, subtask=[*SETS, *CHOICES])
    recalls = [rows["recall", "tier:1"]["value"] for rows in found]
    caution = [rows["criterion", "tier:1"]["value"] for rows in found]
    assert recalls == sorted(set(recalls), reverse=True)
    assert caution == sorted(set(caution))
    assert recalls[0] == 100
    assert {rows["precision", "tier:1"]["value"] for rows in found} == {100}


def test_a_noisy_reader_is_wrong_as_often_as_it_says(root: Path) -> None:
    models = [reader("noisy", f"noisy{error}", error=error) for error in (0.0, 0.25)]
    right, noisy = (rows["primary", "tier:1"] for rows in read(root, *models, subtask=CHOICES))
    assert right["value"] == 100
    assert noisy["low"] < 75 < noisy["high"] < 90


def test_a_planted_effect_of_budget_and_selector_is_found_with_its_size(root: Path) -> None:
    planted = reader("budget_effect", base=0.3, doubling=0.2, clinical=0.2)
    selectors = [{"name": name, "kind": name} for name in ("clinical", "uniform")]
    spec = sweep_spec(root, planted, budget=[8, 16], selector=selectors, subtask=[*CHOICES, "C01", "C12"])
    planned, judged = swept(spec)
    arm = {(arm.selector.name, arm.budget): arm.arm_id for arm in planned.arms}
    pairs = [
        (arm["clinical", 16], arm["clinical", 8], 20),
        (arm["uniform", 16], arm["uniform", 8], 20),
        (arm["uniform", 8], arm["clinical", 8], -20),
        (arm["uniform", 16], arm["clinical", 16], -20),
    ]
    compared = {
        (row["arm_id"], row["versus_arm_id"]): row
        for row in judged.comparisons.to_pylist()
        if (row["metric"], row["tier"]) == ("primary", 1)
    }
    for ours, theirs, points in pairs:
        row = compared[ours, theirs]
        assert row["low"] < points < row["high"]
        assert math.copysign(1, row["low"]) == math.copysign(1, row["high"]) == math.copysign(1, points)


def test_every_reader_has_a_configuration_that_holds() -> None:
    named = [name for name in legal_names("model") if name in READERS]
    assert sorted(named) == sorted(READERS)
    spec = read_spec([f"model=[{','.join(named)}]"])
    assert {identify(model, Path("unused")).facts["reader"] for model in spec.model} == set(READERS)


@pytest.mark.parametrize(
    ("engine", "options", "message"),
    [
        ("oracle", {"error": 0.5}, r"model oracle: options: unknown key .error.; expected only nothing"),
        ("noisy", {"error": 1.5}, r"model noisy: options: error: .*less than or equal to 1, got 1.5"),
        ("noisy", {"error": "rare"}, r"error: .*valid number.*, got .rare."),
        ("budget_effect", {"base": "high"}, r"base: .*valid number.*, got .high."),
    ],
)
def test_options_that_do_not_fit_are_named_before_planning(
    root: Path, engine: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        swept(sweep_spec(root, reader(engine, **options)))
