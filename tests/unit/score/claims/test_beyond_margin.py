"""A claim beyond a margin is tested against the margin, in its family, and prints that p (amendment 17.3)."""

import math
from typing import Any

import numpy as np
import pytest

from cardiolens.score.claims import sentences
from cardiolens.score.statistics.bootstrap import Interval, resampling_weights
from cardiolens.score.statistics.hypothesis_tests import beyond_p
from cardiolens.score.statistics.multiple_testing import PValueRow
from cardiolens.score.statistics.multiple_testing import Tests as Families
from cardiolens.score.statistics.rows import as_row
from cardiolens.score.statistics.statistic import Basis, Statistic

PATIENTS, ITEMS = 200, 30
WEIGHTS = resampling_weights(PATIENTS, 300, 1)


def test_p_is_five_percent_where_the_95_percent_interval_ends_at_the_margin() -> None:
    from scipy import stats

    narrower = stats.t.isf(0.05, 39) / stats.t.isf(0.025, 39)
    at_margin = Interval(5.0, 5 - 3 * narrower, 9.0)
    assert beyond_p(at_margin, 40) == pytest.approx(0.05)
    assert beyond_p(Interval(-5.0, -9.0, -5 + 3 * narrower), 40) == pytest.approx(0.05)
    assert beyond_p(Interval(1.9, 1.8, 2.0), 40) == 1
    assert math.isnan(beyond_p(Interval(3.0, math.nan, math.nan), 40))
    assert math.isnan(beyond_p(Interval(3.0, 3.0, 3.0), 40))


def rows_of(change: np.ndarray, number: int) -> dict[str, dict[str, Any]]:
    """Score rows of one paired difference, as the product makes them."""
    basis = Basis(PATIENTS * ITEMS, PATIENTS, 0, 0)
    difference = Statistic(WEIGHTS @ change / PATIENTS, basis, of_pairs=True)
    arms = {"arm_id": f"a{number}", "versus_arm_id": f"b{number}", "n_same_request": 0}
    row = arms | as_row(("primary.equivalence", "tier:1"), difference, "bootstrap", level=0.9)
    interval = Interval(*(float(str(row[name])) for name in ("value", "low", "high")))
    p = Statistic(np.array([beyond_p(interval, PATIENTS)]), basis)
    swap = Statistic(np.array([1e-9]), basis)  # that they differ at all is beyond doubt
    tests = (("primary.beyond_p", p), ("primary.swap_p", swap))
    return {row["metric"]: row} | {name: arms | as_row((name, "tier:1"), one, "") for name, one in tests}


def claims(true: float, seed: int) -> list[sentences.Finding]:
    """What is said of 24 differences of the same true size, after Holm over them."""
    dice = np.random.default_rng([17, seed])
    pairs = [rows_of(dice.normal(true / 100, 0.17, PATIENTS), number) for number in range(24)]
    tests = Families()
    for pair in pairs:
        tests.add(PValueRow("models", row) for name, row in pair.items() if name.endswith("_p"))
    for row in (row for block in tests.adjusted() for row in block):
        pairs[int(str(row["arm_id"])[1:])][str(row["metric"])] = row
    return [sentences.equivalence("X", "Y", "t", pair["primary.equivalence"], pair) for pair in pairs]


def test_true_differences_of_exactly_the_margin_are_not_called_larger() -> None:
    runs = [claims(2.0, seed) for seed in range(60)]
    false = sum(any(finding.side == "beyond" for finding in run) for run in runs)
    assert false <= 6, "of 60 runs at a family-wise 5 %, 7 or more have a chance of 3 %"


def test_a_difference_well_beyond_the_margin_is_found_and_prints_its_p() -> None:
    found = [finding for finding in claims(9.0, 1) if finding.side == "beyond"]
    assert len(found) == 24
    assert all("after Holm over 24 for more than 2 points" in finding.sentence for finding in found)
