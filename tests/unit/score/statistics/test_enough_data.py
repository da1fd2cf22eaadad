"""Below what counts a number stands without an interval, and no sentence rests on it."""

import numpy as np
import pytest

from cardiolens.score.statistics.bootstrap import FEWEST_FOR_INTERVAL, resampling_weights
from cardiolens.score.statistics.statistic import Basis, Statistic, as_row


def of_patients(patients: int) -> dict[str, object]:
    weights = resampling_weights(patients, 200, 1)
    right = np.arange(patients) % 2 == 0
    statistic = Statistic(weights @ right / patients, Basis(patients, patients, 0, 0))
    return as_row(("accuracy", "tier:1"), statistic, "bootstrap")


def test_a_number_of_fewer_than_eight_patients_stands_alone() -> None:
    few, enough = of_patients(FEWEST_FOR_INTERVAL - 1), of_patients(FEWEST_FOR_INTERVAL)
    assert few["value"] == pytest.approx(100 * 4 / 7)
    assert np.isnan([few["low"], few["high"]]).all()
    assert (few["n_patients"], few["method"]) == (7, "no interval: fewer than 8 patients")
    assert float(str(enough["low"])) < 50 < float(str(enough["high"]))
