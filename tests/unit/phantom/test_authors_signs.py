"""What the fields of `authors-1` ask can be seen: each sign is measured in rendered frames."""

from functools import cache

import numpy as np
import pytest

from cardiolens.phantom import codes
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.parameters import canonical, canonical_values
from cardiolens.phantom.planes import sizes, views
from cardiolens.phantom.render import render
from cardiolens.phantom.roster import study
from cardiolens.phantom.signal import appearance
from cardiolens.protocol.tasks.segments import LEVELS, SIX_WALLS, touched
from cardiolens.protocol.tasks.truth import findings

MUSCLE = tuple(range(1, 18))
BRIGHT = tuple(codes.LESION + number for number in MUSCLE)
DARK = tuple(codes.OBSTRUCTION + number for number in MUSCLE)
AUTHORS = [name for name in canonical_values() if name.startswith("PH-AU-")]


@cache
def shown(name, code):
    """A view of a canonical study as rendered, at standard difficulty, with its masks."""
    size = sizes()["ci"]
    look = appearance("standard", "seed", size.spacing_mm)
    heart = Heart(canonical(f"PH-{name}"))
    return render(heart, views()[code], size, look=look, seed="seed", masks=True)


def mean(found, tissue):
    return found.frames[np.isin(found.masks, tissue)].mean()


@pytest.mark.parametrize(
    ("name", "view", "tissues", "least"),
    [
        ("AU-ANEURYSM", "lge_sax", (BRIGHT, DARK), 3),  # dark cores of scar: transmural,
        ("AU-INFARCT", "lge_sax", (BRIGHT, DARK), 3),  # subendocardial,
        ("AU-INFARCT", "lge_sax", ((121,), (171,)), 1.8),  # of the papillary muscles,
        ("AU-SPADE", "lge_4ch", ((117,), (167,)), 2.5),  # at the apex,
        ("AU-RIGHT", "lge_sax", (BRIGHT, DARK), 2),  # as specks
        ("AU-INFARCT", "lge_sax", ((121,), MUSCLE), 4),  # papillary enhancement
        ("AU-OBSTRUCTIVE", "lge_4ch", (BRIGHT, MUSCLE), 4),  # septal insertion in the view that is asked
        ("AU-RIGHT", "lge_4ch", ((123,), (23,)), 3),
        ("AU-PERICARDITIS", "lge_sax", ((127,), (27,)), 2.5),
        ("AU-ANEURYSM", "t2_sax", (BRIGHT, DARK), 3),  # mixed
        ("AU-INFARCT", "t2_sax", (MUSCLE, DARK), 1.8),  # low
        ("AU-STENOSIS", "t2_sax", ((121,), MUSCLE), 1.5),
        ("AU-PERICARDITIS", "t2_sax", (BRIGHT, MUSCLE), 1.7),
    ],
)
def test_signal_of_lesions_and_of_their_dark_cores(name, view, tissues, least):
    found, (brighter, darker) = shown(name, view), tissues
    assert mean(found, brighter) > least * mean(found, darker)


@pytest.mark.parametrize("name", AUTHORS)
@pytest.mark.parametrize(
    ("view", "tissues", "levels", "walls"),
    [
        ("lge_4ch", BRIGHT, "lge.high_segments", None),
        ("lge_sax", BRIGHT, None, "lge.high_walls"),
        ("lge_sax", DARK, "lge.low_segments", "lge.low_walls"),
        ("perf_sax", BRIGHT, "perfusion.segments", "perfusion.walls"),
        ("t2_sax", (*BRIGHT, *DARK), "t2.segments", "t2.walls"),
    ],
)
def test_the_view_that_is_asked_shows_every_place_of_the_truth(name, view, tissues, levels, walls):
    """By the tissue of its pixels, at CI size; the papillary muscles have codes of their own."""
    found, truth = shown(name.removeprefix("PH-"), view), dict(known(name))
    seen = set(np.unique(found.masks).tolist())
    segments = {code % 50 for code in seen & set(tissues)}
    papillary = ("papillary",) if seen & {code - code % 50 + codes.PAPILLARY for code in tissues} else ()
    if levels:
        more = papillary if levels.startswith("lge") else ()
        assert touched(segments, LEVELS) + more == truth[levels]
    if walls:
        assert touched(segments, SIX_WALLS) == truth[walls]


def known(study_id):
    return findings(study(2026, study_id).truth).items()
