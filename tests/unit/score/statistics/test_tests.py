"""Tests and small inference against the worked values of protocol 8.5 and published ones."""

import numpy as np
import pytest

from cardiolens.score.statistics import hypothesis_tests as inference
from cardiolens.score.statistics.bootstrap import Interval


def test_holm_and_false_discovery_by_hand() -> None:
    assert inference.adjusted([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert inference.adjusted([0.01, 0.04, 0.03, 0.005], "fdr_bh") == pytest.approx([0.02, 0.04, 0.04, 0.02])
    assert inference.adjusted([0.5, 0.9]) == pytest.approx([1, 1])
    assert len(inference.adjusted([])) == 0


def test_undefined_tests_are_in_no_family() -> None:
    adjusted = inference.adjusted([0.02, np.nan, 0.01])
    assert adjusted == pytest.approx([0.02, np.nan, 0.02], nan_ok=True)


@pytest.mark.parametrize(
    ("low", "high", "side"),
    [
        (-0.6, 1.3, "within"),
        (-1.0, 2.0, None),
        (-3.0, 3.0, None),
        (2.1, 4.0, "beyond"),
        (-5.0, -2.0, "beyond"),
        (np.nan, np.nan, None),
    ],
)
def test_equivalence_follows_the_90_percent_interval(low: float, high: float, side: str | None) -> None:
    assert inference.margin_side(Interval(0.4, low, high)) == side


def test_kendall_tau_of_ranks() -> None:
    tau, p = inference.kendall(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4]))
    assert tau == pytest.approx(4 / 6)
    assert p == pytest.approx(8 / 24)  # permutations of 4 with |tau| of at least 4/6
    assert np.isnan(inference.kendall(np.array([1.0, 1.0]), np.array([1.0, 2.0]))).all()
    assert np.isnan(inference.kendall(np.array([1.0]), np.array([1.0]))).all()


def test_the_difference_that_can_be_shown_uses_the_adjusted_level() -> None:
    alone, among = (inference.detectable_difference(1.0, number) for number in (1, 20))
    assert alone == pytest.approx(2.8016, abs=1e-4)
    assert among == pytest.approx(3.0233 + 0.8416, abs=1e-3)  # the normal quantile of 0.05 / 40
    assert inference.planned_error(200, 1, agreement=0, within=0) == pytest.approx(5)
    assert inference.planned_error(200, 4, agreement=0, within=1) == pytest.approx(5)
    assert np.isnan(inference.planned_error(0, 1))


def row(difference: float, low: float, high: float) -> dict[str, float]:
    return {"difference": difference, "low": low, "high": high}


def test_p_values_of_intervals_agree_with_their_ends() -> None:
    assert inference.row_p(row(3.0, 0.0, 7.0), 40) == pytest.approx(0.05)
    assert inference.row_p(row(-3.0, -9.0, 0.0), 40) == pytest.approx(0.05)
    assert inference.equivalence_p(Interval(0.5, -1.0, 2.0), 40) == pytest.approx(0.05)
    assert np.isnan(inference.equivalence_p(Interval(0.0, 0.0, 0.0), 40))
    assert inference.equivalence_p(Interval(3.0, 2.5, 3.5), 40) > 0.5
    assert np.isnan(inference.row_p(row(1.0, np.nan, np.nan), 40))
    assert np.isnan(inference.row_p(row(100.0, 100.0, 100.0), 40))


def test_p_is_five_percent_where_the_95_percent_interval_ends_at_the_margin() -> None:
    from scipy import stats

    narrower = stats.t.isf(0.05, 39) / stats.t.isf(0.025, 39)
    at_margin = Interval(5.0, 5 - 3 * narrower, 9.0)
    assert inference.beyond_p(at_margin, 40) == pytest.approx(0.05)
    assert inference.beyond_p(Interval(-5.0, -9.0, -5 + 3 * narrower), 40) == pytest.approx(0.05)
    assert inference.beyond_p(Interval(1.9, 1.8, 2.0), 40) == 1
    assert np.isnan(inference.beyond_p(Interval(3.0, np.nan, np.nan), 40))
    assert np.isnan(inference.beyond_p(Interval(3.0, 3.0, 3.0), 40))
