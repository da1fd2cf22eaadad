"""End-systole by the blood of a short-axis cine: by most slices, and told where two phases are alike."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.study.blood_pool import BloodAreas


def areas(systole: int, n_phases: int = 12, n_slices: int = 8) -> np.ndarray:
    """Slices of unlike size that contract to 60 % in one phase, by 4 % or more from the next."""
    phase = np.abs(np.arange(n_phases) - systole)
    left = np.minimum(0.6 + 0.04 * phase, 1.0)
    left[0] = 1.0
    return np.linspace(2500, 600, n_slices)[:, None] * left


@given(st.integers(2, 10), st.integers(0, 3), st.integers(1, 11), st.floats(0.05, 0.9))
def test_one_slice_that_moved_does_not_decide(systole: int, slice_: int, phase: int, left: float) -> None:
    found = areas(systole)
    found[2 + slice_, phase] *= left
    blood = BloodAreas(found)
    assert (blood.end_systole, blood.tied) == (systole, ())


@given(st.integers(2, 9), st.floats(0, 0.004))
def test_a_tie_is_told(systole: int, more: float) -> None:
    found = areas(systole)
    found[:, systole + 1] = found[:, systole] * (1 + more)
    blood = BloodAreas(found)
    assert {blood.end_systole, *blood.tied} == {systole, systole + 1}
