import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cardiolens.study.windowing import grey_scale

PCT = (1.0, 99.0)
STORED = npst.arrays(np.int16, (3, 4, 5)).filter(lambda a: np.ptp(a.astype(int)) > 0)


@given(STORED, st.sampled_from([(1.0, 0.0), (2.5, -7.0), (-0.5, 3.0)]))
def test_the_window_lies_at_the_percentiles_of_the_intensities(stored, scaling):
    slope, inter = scaling
    scale = grey_scale(stored, PCT, slope, inter)
    intensities = stored.astype(float) * slope + inter
    zeros = intensities == 0
    imaged = intensities[~zeros] if zeros.mean() >= 0.01 and not zeros.all() else intensities
    low, high = np.percentile(imaged, PCT)
    if low == high:
        low, high = intensities.min(), intensities.max()
    assert (scale.low, scale.high) == pytest.approx((low, high), abs=1e-6)


@given(STORED)
def test_integers_and_the_same_values_as_floats_give_the_same_bytes(stored):
    counted, ranked = grey_scale(stored, PCT, 1, 0), grey_scale(stored.astype(np.float64), PCT, 1, 0)
    assert counted.table is not None
    assert ranked.table is None
    assert np.array_equal(counted.show(stored[1]), ranked.show(stored[1].astype(np.float64)))


@pytest.mark.parametrize("dtype", [">i2", "u8", ">f8"])
def test_every_dtype_is_shown_alike(dtype):
    stored = np.arange(101).reshape(1, 1, 101)
    expected = grey_scale(stored.astype(np.int16), PCT, 1, 0).show(stored[0])
    scale = grey_scale(stored.astype(dtype), PCT, 1, 0)
    assert (scale.low, scale.high) == (1, 99)
    assert np.array_equal(scale.show(stored.astype(dtype)[0]), expected)


def test_values_are_clipped_and_halves_round_up():
    stored = np.arange(0, 511).reshape(1, 1, 511)
    shown = grey_scale(stored, (0, 100), 1, 0).show(stored[0])[0]
    assert shown.dtype == np.uint8
    assert shown[[0, 1, 2, 3, 510]].tolist() == [0, 1, 1, 2, 255]  # 0.5 -> 1, 1.5 -> 2
    narrow = grey_scale(stored, (20, 80), 1, 0)
    assert (narrow.low, narrow.high) == (102, 408)
    assert narrow.show(stored[0])[0][[50, 102, 408, 500]].tolist() == [0, 0, 255, 255]


def test_a_negative_slope_inverts_the_picture():
    stored = np.arange(101, dtype=np.int16).reshape(1, 1, 101)
    scale = grey_scale(stored, PCT, -1, 0)
    assert (scale.low, scale.high) == (-99, -1)
    assert scale.show(stored[0])[0][[0, 50, 100]].tolist() == [255, 128, 0]


def test_where_both_percentiles_coincide_the_window_spans_all_values():
    stored = np.zeros((1, 20, 20), np.int16)
    stored[0, 3, 4] = 9
    scale = grey_scale(stored, PCT, 2, 1)
    assert (scale.low, scale.high) == (1, 19)
    assert scale.show(stored[0])[3, 4] == 255


@pytest.mark.parametrize("dtype", ["i2", "f8"])
@pytest.mark.parametrize("fill", [0, 7])
@given(share=st.floats(0.0, 0.45))
def test_padding_moves_no_window(dtype, fill, share):
    """A border of zeros or of any other value, of whatever width, on some sides."""
    heart = np.random.default_rng(4).integers(100, 3000, (3, 40, 40)).astype(dtype)
    padded = np.pad(heart, ((0, 0), (0, round(40 * share)), (round(20 * share), 0)), constant_values=fill)
    bare, framed = (grey_scale(frames, PCT, 1, 0) for frames in (heart, padded))
    assert (bare.low, bare.high) == (framed.low, framed.high)


def test_a_window_by_intensities_stands_in_place_of_percentiles():
    stored = np.arange(101).reshape(1, 1, 101)
    scale = grey_scale(stored, PCT, 2, 1, window=(51, 306))
    assert scale.show(stored[0])[0][[0, 25, 50, 75]].tolist() == [0, 0, 50, 100]
