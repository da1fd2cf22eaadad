"""What rendered frames show, beside the labels that test_phantom_masks.py finds in them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.phantom import codes
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.parameters import canonical, canonical_values
from cardiolens.phantom.planes import sizes, views
from cardiolens.phantom.render import render
from cardiolens.phantom.roster import study
from cardiolens.phantom.signal import appearance

CI = sizes()["ci"]
CAVITY = (codes.LV_BLOOD, codes.PAPILLARY, codes.LEAFLET)


def rendered(heart, code, difficulty="standard", size=CI, *, masks=False):
    look = appearance(difficulty, "seed", size.spacing_mm)
    return render(heart, views()[code], size, look=look, seed="seed", masks=masks)


@settings(max_examples=6, deadline=None)
@given(st.integers(1, 670), st.sampled_from(["cine_4ch", "lge_3ch", "t2_4ch"]))
def test_tissue_and_so_every_label_is_the_same_at_every_difficulty(number, code):
    heart = Heart(study(2026, f"PH-{number:04d}").parameters)
    easy, hard = (rendered(heart, code, difficulty, masks=True) for difficulty in ("easy", "hard"))
    assert np.array_equal(easy.masks, hard.masks)
    assert not np.array_equal(easy.frames, hard.frames)


@pytest.mark.full
@pytest.mark.parametrize("name", canonical_values())
def test_hearts_lie_as_a_reader_expects(name):
    """Right ventricle on image left, atria below the ventricles, apex up, both ventricles whole."""
    heart = Heart(canonical(name))
    sax = rendered(heart, "cine_sax", masks=True)
    middle = sax.masks[sax.phases * (len(sax.planes) // 2)]
    assert columns(middle, codes.RV_BLOOD).mean() < columns(middle, codes.LV_BLOOD).mean()
    assert np.count_nonzero(sax.masks[sax.phases * (len(sax.planes) - 1)] == codes.RV_BLOOD) == 0
    four = rendered(heart, "cine_4ch", masks=True).masks
    assert rows(four[0], codes.LA_BLOOD).mean() > rows(four[0], codes.LV_BLOOD).max()
    assert rows(four[0], codes.RA_BLOOD).mean() > rows(four[0], codes.RV_BLOOD).max() - 1
    assert columns(four[0], codes.RA_BLOOD).mean() < columns(four[0], codes.LA_BLOOD).mean()
    assert rows(four[0], 17).min() < rows(four[0], codes.LV_BLOOD).min()
    ventricles = np.isin(four, (*range(1, 18), codes.RV_WALL))
    assert not ventricles[:, [0, -1]].any()
    assert not ventricles[:, :, [0, -1]].any()


def rows(mask, code):
    return np.nonzero(mask == code)[0]


def columns(mask, code):
    return np.nonzero(mask == code)[1]


@pytest.mark.parametrize("name", canonical_values())
def test_the_cavity_is_smallest_in_the_frame_called_end_systole(name):
    found = rendered(Heart(canonical(name)), "cine_2ch", masks=True)
    areas = [np.count_nonzero(np.isin(mask, CAVITY)) for mask in found.masks]
    assert areas[0] == max(areas)
    assert areas[found.es_phase] <= 1.02 * min(areas)
