"""The first pass of simulated hearts: the left ventricle's peak within two beats, or not found."""

import numpy as np
import pytest

from bench.first_pass import NEAR, TRAITS, measured
from cardiolens.study.times import first_pass


@pytest.mark.parametrize("trait", TRAITS)
@pytest.mark.parametrize("number", range(3))
def test_the_peak_is_that_of_the_left_ventricle_or_not_found(trait, number):
    peak, truth = measured(trait, number)
    if truth is None:
        assert peak is None
    else:
        assert peak is not None
        assert abs(peak - truth) <= NEAR


def test_a_first_peak_before_a_slow_rise_without_wash_out_is_not_the_end_of_the_rise():
    """As one real series shows: onset at 6, a peak at 13 that hardly falls, then a slow rise to the end."""
    beats = np.arange(79.0)
    curve = 100 + 300 * np.clip((beats - 6) / 7, 0, 1) - 30 * np.clip((beats - 13) / 3, 0, 1)
    passed = first_pass(list(curve + 1.5 * np.maximum(beats - 20, 0)))
    assert not passed.bolus_found or abs(passed.t_peak - 13) <= 2
