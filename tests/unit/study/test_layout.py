import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.study.layout import Layout, resolve, small

GRIDS = st.tuples(st.integers(1, 14), st.integers(1, 30))


@given(GRIDS, st.booleans(), st.booleans())
def test_each_canonical_index_names_the_frame_of_its_slice_and_phase(grid, phase_major, apex_first):
    n_slices, n_phases = grid
    order = Layout(*grid, phase_major=phase_major).canonical_order(apex_first=apex_first)
    assert sorted(order) == list(range(n_slices * n_phases))
    for idx, stored in enumerate(order):
        rank, phase = divmod(idx, n_phases)
        found = divmod(stored, n_slices)[::-1] if phase_major else divmod(stored, n_phases)
        assert found == (n_slices - 1 - rank if apex_first else rank, phase)


@pytest.mark.parametrize("order", ["slice_major", "phase_major", "static"])
def test_a_true_fourth_axis_is_the_phase_whatever_the_order_says(order):
    assert resolve((8, 8, 3, 5), order, 3, 5) == Layout(3, 5, phase_major=True)


def test_counts_follow_from_the_shape_where_one_is_declared():
    assert resolve((8, 8, 240), "slice_major", 12, None) == Layout(12, 20)
    assert resolve((8, 8, 240), "phase_major", None, 20) == Layout(12, 20, phase_major=True)
    assert resolve((8, 8, 240), "static", None, None) == Layout(240, 1)
    with pytest.raises(InputError, match=r"^layout_unresolved: .* 240 frames are phases; expected layout"):
        resolve((8, 8, 240), "slice_major", None, None)


@pytest.mark.parametrize(
    ("shape", "order", "n_slices", "n_phases", "expected"),
    [
        ((8, 8, 239), "slice_major", 12, 20, "holds 239 frames; expected n_slices x n_phases = 12 x 20"),
        ((8, 8, 3, 5), "slice_major", 5, 3, "holds 15 frames; expected n_slices x n_phases = 5 x 3"),
        ((8, 8, 12), "static", 12, 2, "holds 12 frames; expected n_slices x n_phases = 12 x 2"),
    ],
)
def test_a_mismatch_is_never_truncated(shape, order, n_slices, n_phases, expected):
    with pytest.raises(InputError, match=f"^layout_mismatch: the volume {expected} "):
        resolve(shape, order, n_slices, n_phases)


def test_frames_are_compared_at_64_pixels_or_less():
    frame = np.arange(130 * 70).reshape(130, 70)
    assert small(frame).shape == (43, 23)
    assert small(frame)[0, 0] == frame[:3, :3].mean()
    assert np.array_equal(small(frame[:64, :10]), frame[:64, :10])
    assert small(np.ones((400, 2))).shape == (57, 1)
