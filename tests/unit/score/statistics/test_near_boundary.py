"""No interval of zero width and no p from zero variance."""

import numpy as np
import pytest
from scipy import stats

from bench.coverage import risk
from cardiolens.score.statistics.bootstrap import (
    Basis,
    Interval,
    effective_items,
    effective_patients,
    resampling_weights,
    share_ends,
)
from cardiolens.score.statistics.hypothesis_tests import equivalence_p, margin_side
from cardiolens.score.statistics.statistic import Statistic, as_row


def share_row(right: np.ndarray, level: float = 0.95) -> dict[str, object]:
    weights = resampling_weights(len(right), 300, 1)
    statistic = Statistic(weights @ right / len(right), Basis(len(right), len(right), 0, 0))
    return as_row(("accuracy", "tier:1"), statistic, "bootstrap", level)


def difference_row(ours: np.ndarray, theirs: np.ndarray, level: float = 0.95) -> dict[str, object]:
    weights = resampling_weights(len(ours), 300, 1)
    values = weights @ (ours - theirs) / len(ours)
    statistic = Statistic(values, Basis(len(ours), len(ours), 0, 0), of_pairs=True)
    return as_row(("primary", "tier:1"), statistic, "bootstrap", level)


def test_a_number_of_fewer_than_eight_patients_stands_alone() -> None:
    few, enough = (share_row(np.arange(n) % 2 == 0) for n in (7, 8))
    assert few["value"] == pytest.approx(100 * 4 / 7)
    assert np.isnan([few["low"], few["high"]]).all()
    assert (few["n_patients"], few["method"]) == (7, "no interval: fewer than 8 patients")
    assert float(str(enough["low"])) < 50 < float(str(enough["high"]))


def test_all_right_has_the_interval_of_clopper_and_pearson() -> None:
    row = share_row(np.ones(13))
    exact = stats.binomtest(13, 13).proportion_ci(method="exact")
    assert (row["value"], row["high"]) == (100, 100)
    assert row["low"] == pytest.approx(100 * exact.low)
    assert str(row["method"]).startswith("near the boundary: Clopper-Pearson with an effective n")
    assert share_row(np.zeros(13))["high"] == pytest.approx(100 - 100 * exact.low)


def test_items_of_a_patient_count_less_than_as_many_patients() -> None:
    (of_patients, _), (of_items, _) = (
        share_ends(1.0, 0.0, Basis(60, n, 0, 0), 0.025) or (0, 0) for n in (60, 12)
    )
    assert of_items == pytest.approx(stats.beta.ppf(0.025, 20, 1))
    assert of_items < of_patients
    assert share_ends(0.5, 0.25 / 200, Basis(200, 200, 0, 0), 0.025) is None


def test_small_classes_make_a_mean_worth_fewer_items_and_no_fewer_than_its_variance_says() -> None:
    sizes = [np.array((24, 12, 4)), np.array((20, 20))]  # of 40 patients each
    items = effective_items(sizes)
    assert items == pytest.approx(4 / ((1 / 24 + 1 / 12 + 1 / 4) / 9 + 0.1 / 4))
    assert effective_items([np.array((10, 10))]) == 20
    of_classes = Basis(80, 40, 0, 0, n_effective=effective_patients(sizes), effective_items=items)
    low, _ = share_ends(1.0, 0.0, of_classes, 0.025) or (0, 0)
    assert low == pytest.approx(stats.beta.ppf(0.025, items / 2, 1))
    assert share_ends(0.3, 0.3 * 0.7 / items, of_classes, 0.025) is None


def test_a_risk_among_the_most_confident_is_covered() -> None:
    """Also where none of them is wrong: before, that was 0 to 100 %, or as if all answers were kept."""
    covers, width = zip(*(risk(40, 1, coverage, 100, 200) for coverage in (0.1, 0.2, 0.4)), strict=True)
    assert min(covers) >= 95
    assert max(width) < 70


@pytest.mark.parametrize("patients", [8, 20, 100])
def test_arms_that_never_differ_are_equivalent_only_where_the_cohort_is_large(patients: int) -> None:
    row = difference_row(np.ones(patients), np.ones(patients), 0.9)
    reach = stats.t.isf(0.05, patients - 1) ** 2
    assert row["high"] == pytest.approx(100 * reach / (patients + reach))
    assert row["low"] == -float(str(row["high"]))
    interval = Interval(0.0, float(str(row["low"])), float(str(row["high"])))
    assert margin_side(interval) is None
    assert equivalence_p(interval, patients) > 0.05


def test_a_difference_of_two_points_is_rarely_called_equivalent() -> None:
    """200 patients, one item each, the other arm wrong in 2 %: at most 5 % say equivalent."""
    called = 0
    for seed in range(300):
        wrong = np.random.default_rng(seed).random(200) < 0.02
        row = difference_row(np.ones(200), 1.0 - wrong, 0.9)
        interval = Interval(*(float(str(row[name])) for name in ("value", "low", "high")))
        called += margin_side(interval) == "within"
    assert called <= 15


def test_a_statistic_that_is_no_share_and_never_varies_has_no_interval() -> None:
    row = as_row(("kappa", "subtask:L01"), Statistic(np.ones(300), Basis(40, 40, 0, 0)), "bootstrap")
    assert np.isnan([row["low"], row["high"]]).all()
    assert row["method"] == "no interval: no resample differs from another"


def test_a_difference_of_reports_counts_entities_not_reports() -> None:
    values = np.concatenate([[0.02], 0.02 + 0.03 * stats.norm.ppf((np.arange(300) + 0.5) / 300)])
    of_items = Statistic(values, Basis(80, 20, 0, 0), of_pairs=True).interval("primary")
    reports = Basis(80, 20, 0, 0, n_entities=400)
    of_entities = Statistic(values, reports, of_pairs=True).interval("primary")
    assert of_items.how.startswith("few answers differ")
    assert (of_entities.how, of_entities.high - of_entities.low < 14) == ("", True)


def test_a_difference_reaches_at_least_as_far_as_its_resamples() -> None:
    values = np.array([0.0, *[0.0] * 380, *[0.02] * 20])
    found = Statistic(values, Basis(400, 400, 0, 0), of_pairs=True).interval("primary")
    assert found.how.startswith("few answers differ")
    assert found.low < 0 < found.high == pytest.approx(2)
