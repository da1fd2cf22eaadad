"""Tests and small inference against the worked values of protocol 8.5 and published ones."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.score.statistics import hypothesis_tests as inference
from cardiolens.score.statistics import metrics, paired
from cardiolens.score.statistics.bootstrap import Interval


def test_mcnemar_check_values() -> None:
    exact = paired.mcnemar(12, 4)
    assert exact.method == "exact binomial"
    assert exact.p == pytest.approx(0.0768, abs=1e-4)
    approximate = paired.mcnemar_chi2(12, 4)
    assert (approximate.statistic, approximate.p) == pytest.approx((3.0625, 0.0801), abs=1e-4)


def test_mcnemar_changes_form_at_25_discordant_items() -> None:
    assert paired.mcnemar(20, 4).method == "exact binomial"
    assert paired.mcnemar(20, 5).method.startswith("chi-squared")
    assert paired.mcnemar(0, 0).p == 1


def test_mcnemar_of_two_readers() -> None:
    first, second = np.array([True, True, False, True]), np.array([False, True, True, False])
    assert paired.mcnemar_of(first, second) == paired.mcnemar(2, 1)


def test_wilcoxon_check_value() -> None:
    differences = np.array([5.1, -1.2, 3.3, 0.4, 2.2, -0.3, 1.9, 4.0, 0, 2.5])
    found = paired.wilcoxon(differences)
    assert (found.statistic, found.method) == (4, "exact")
    assert found.p == pytest.approx(0.0273, abs=1e-4)


def test_wilcoxon_with_ties_is_normal() -> None:
    """Depression scores of Hollander and Wolfe (R's help page of wilcox.test), twice over."""
    first = np.array([1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30])
    second = np.array([0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29])
    single = paired.wilcoxon(first - second)
    assert (single.statistic, single.p) == pytest.approx(
        (5, 0.03906), abs=1e-5
    )  # R: V = 40, p = 0.03906 two-sided
    double = paired.wilcoxon(np.tile(first - second, 2))
    assert double.method == "normal with tie correction"
    assert double.p < single.p


def test_wilcoxon_of_no_difference_is_undefined() -> None:
    assert np.isnan(paired.wilcoxon(np.zeros(4)).p)


def test_holm_by_hand() -> None:
    assert inference.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert inference.holm([0.5, 0.9]) == pytest.approx([1, 1])
    assert inference.holm([]) == []


def test_holm_counts_only_defined_tests() -> None:
    adjusted = inference.holm([0.02, np.nan, 0.01])
    assert adjusted[0] == pytest.approx(0.02)
    assert adjusted[2] == pytest.approx(0.02)
    assert np.isnan(adjusted[1])


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_keeps_order_and_never_lowers_p(p_values: list[float]) -> None:
    adjusted = inference.holm(p_values)
    assert all(after >= before for before, after in zip(p_values, adjusted, strict=True))
    by_p = [after for _, after in sorted(zip(p_values, adjusted, strict=True))]
    assert by_p == sorted(by_p)


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


def test_wilson_published_values() -> None:
    """Newcombe (1998), table I: 81 of 263, 0 of 20, 1 of 29."""
    for successes, trials, low, high in [
        (81, 263, 0.2553, 0.3662),
        (0, 20, 0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ]:
        found = inference.wilson(successes, trials)
        assert (found.low, found.high) == pytest.approx((low, high), abs=1e-4)
    assert np.isnan(inference.wilson(0, 0).value)


def test_kendall_tau_of_ranks() -> None:
    found = paired.kendall(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4]))
    assert found.statistic == pytest.approx(4 / 6)
    assert found.p == pytest.approx(8 / 24)  # permutations of 4 with |tau| of at least 4/6
    assert np.isnan(paired.kendall(np.array([1.0, 1.0]), np.array([1.0, 2.0])).statistic)
    assert np.isnan(paired.kendall(np.array([1.0]), np.array([1.0])).p)


def test_gwet_ac1_where_kappa_collapses() -> None:
    """Gwet (2008): 118 of 125 in one cell; kappa is near 0, AC1 near the raw agreement."""
    table = np.array([[118.0, 5.0], [2.0, 0.0]])
    assert metrics.kappa(np.pad(table, ((0, 0), (0, 1)))) == pytest.approx(-0.0234, abs=1e-4)
    assert inference.gwet_ac1(table) == pytest.approx(0.9408, abs=1e-4)
    assert inference.gwet_ac1(np.eye(3)) == 1


def test_the_difference_that_can_be_shown_uses_the_adjusted_level() -> None:
    alone, among = (inference.detectable_difference(1.0, number) for number in (1, 20))
    assert alone == pytest.approx(2.8016, abs=1e-4)
    assert among == pytest.approx(3.0233 + 0.8416, abs=1e-3)  # the normal quantile of 0.05 / 40
    assert inference.planned_error(200, 1, agreement=0, within=0) == pytest.approx(5)
    assert inference.planned_error(200, 4, agreement=0, within=1) == pytest.approx(5)
    assert np.isnan(inference.planned_error(0, 1))


def test_p_values_of_intervals_agree_with_their_ends() -> None:
    assert inference.interval_p(Interval(3.0, 0.0, 7.0), 0, 40) == pytest.approx(0.05)
    assert inference.interval_p(Interval(-3.0, -9.0, 0.0), 0, 40) == pytest.approx(0.05)
    assert inference.equivalence_p(Interval(0.5, -1.0, 2.0), 40) == pytest.approx(0.05)
    assert np.isnan(inference.equivalence_p(Interval(0.0, 0.0, 0.0), 40))
    assert inference.equivalence_p(Interval(3.0, 2.5, 3.5), 40) > 0.5
    assert np.isnan(inference.interval_p(Interval(1.0, np.nan, np.nan), 0, 40))
