"""What the fields of `authors-1` ask can be seen: each sign is measured in rendered frames."""

from functools import cache

import numpy as np
import pytest
from scipy import ndimage

from cardiolens.phantom import codes
from cardiolens.phantom.appearance import appearance
from cardiolens.phantom.archetypes import canonical, canonical_values
from cardiolens.phantom.geometry import Heart, activation
from cardiolens.phantom.planes import sizes, views
from cardiolens.phantom.render import render
from cardiolens.phantom.roster import study
from cardiolens.phantom.signal import FULL_SCALE
from cardiolens.protocol.tasks.segments import LEVELS, SIX_WALLS, touched
from cardiolens.protocol.tasks.truth import findings

MUSCLE = tuple(range(1, 18))
BRIGHT = tuple(codes.LESION + number for number in MUSCLE)
DARK = tuple(codes.OBSTRUCTION + number for number in MUSCLE)
AUTHORS = [name for name in canonical_values() if name.startswith("PH-AU-")]
IDS = ("PH-NORMAL", *AUTHORS)
_LEVELS, _WALLS = "basal mid apical apex", " ".join(SIX_WALLS)
_PATTERNS = "diffuse linear patchy transmural speckled"
_LAYERS = "subendocardial mid_wall transmural subepicardial papillary"
VALUES = {  # of every field of `authors-1`
    "cine.wall_thickness": "normal thinned heterogeneous thickened bulging",
    "cine.wall_coordination": "coordinated uncoordinated",
    "cine.wall_amplitude": "normal reduced absent paradoxical enhanced",
    "cine.systolic_function": "normal reduced enhanced",
    "cine.diastolic_function": "normal restrictive",
    "cine.mitral_regurgitation": "present absent",
    "cine.tricuspid_regurgitation": "present absent",
    "cine.aortic_regurgitation": "present absent",
    "cine.special_signs": "systolic_anterior_motion outflow_obstruction spade_sign aortic_stenosis "
    "dilated_pulmonary_artery",
    "cine.pericardial_effusion": "present absent",
    "cine.pleural_effusion": "present absent",
    "lge.enhancement_status": "normal abnormal",
    "lge.signal_kind": "high mixed",
    **{f"lge.{signal}_segments": f"{_LEVELS} papillary" for signal in ("high", "low")},
    **{f"lge.{signal}_walls": _WALLS for signal in ("high", "low")},
    **{f"lge.{signal}_patterns": _PATTERNS for signal in ("high", "low")},
    **{f"lge.{signal}_layers": _LAYERS for signal in ("high", "low")},
    "lge.special_description": "pericardial septal_insertion right_ventricle",
    "perfusion.status": "normal abnormal",
    "perfusion.segments": _LEVELS,
    "perfusion.walls": _WALLS,
    "perfusion.kind": "reduced delayed defect",
    "perfusion.layers": _LAYERS,
    "t2.signal_status": "normal high low mixed",
    "t2.segments": _LEVELS,
    "t2.walls": _WALLS,
    "t2.patterns": _PATTERNS,
    "t2.layers": _LAYERS,
}
BLOOD = 0.6  # of full scale: cine blood is brighter, muscle, walls, leaflets and jets are darker


class Shown:
    """A view of a canonical study as rendered, at standard difficulty, with its masks."""

    def __init__(self, name, code, size):
        self.size, self.heart = sizes()[size], Heart(canonical(name))
        look = appearance("standard", "seed", self.size.spacing_mm)
        found = render(self.heart, views()[code], self.size, look=look, seed="seed", masks=True)
        self.frames, self.masks, self.planes, self.phases = (
            found.frames / FULL_SCALE,
            found.masks,
            found.planes,
            found.phases,
        )
        self.steps = (np.arange(self.size.pixels) - (self.size.pixels - 1) / 2) * self.size.spacing_mm
        self.x, self.y = np.meshgrid(self.steps - 12.0, -self.steps)  # of a short axis
        self.phi = np.rad2deg(np.arctan2(self.y, self.x)) % 360

    def mean(self, tissue, frames=slice(None)):
        return self.frames[frames][np.isin(self.masks[frames], tissue)].mean()

    def number(self, share=0.5, phase=0):
        """The frame of a phase and of a slice, given as a share of the stack."""
        return int(share * len(self.planes)) * self.phases + phase

    def row(self, z):
        """The row of a long-axis view at a height, mm."""
        return int(np.argmin(np.abs(self.planes[0].centre[2] - self.steps - z)))

    def cavity_mm(self, share, degrees, phase):
        """Radius of the blood around the long axis in a sector of 40 degrees of a short-axis slice."""
        blood, _ = ndimage.label(self.frames[self.number(share, phase)] > BLOOD)
        middle = np.unravel_index(np.argmin(np.hypot(self.x, self.y)), self.x.shape)
        sector = np.abs((self.phi - degrees + 180) % 360 - 180) < 20
        inside = np.count_nonzero((blood == blood[middle]) & sector)
        return np.sqrt(inside * self.size.spacing_mm**2 / np.deg2rad(20))


@cache
def shown(name, code, size="ci"):
    return Shown(f"PH-{name}", code, size)


@pytest.mark.parametrize("size", ["ci", "default"])
@pytest.mark.parametrize(
    ("name", "view", "tissues", "least"),
    [
        ("AU-ANEURYSM", "lge_sax", (BRIGHT, DARK), 3),  # dark cores of scar: transmural,
        ("AU-INFARCT", "lge_sax", (BRIGHT, DARK), 3),  # subendocardial,
        ("AU-INFARCT", "lge_sax", ((121,), (171,)), 1.8),  # of the papillary muscles,
        ("AU-SPADE", "lge_sax", (BRIGHT, DARK), 3),  # as islands,
        ("AU-SPADE", "lge_4ch", ((117,), (167,)), 2.5),  # at the apex,
        ("AU-STENOSIS", "lge_sax", (BRIGHT, DARK), 3),  # all around,
        ("AU-RIGHT", "lge_sax", (BRIGHT, DARK), 2),  # as specks
        ("AU-INFARCT", "lge_sax", ((121,), MUSCLE), 4),  # papillary enhancement
        ("AU-LATE", "lge_sax", (BRIGHT, MUSCLE), 3),
        ("AU-OBSTRUCTIVE", "lge_4ch", (BRIGHT, MUSCLE), 4),  # septal insertion in the view that is asked
        ("AU-RIGHT", "lge_4ch", ((123,), (23,)), 3),
        ("AU-PERICARDITIS", "lge_sax", ((127,), (27,)), 2.5),
        ("AU-PERICARDITIS", "lge_4ch", ((127,), (27,)), 2.5),
        ("AU-ANEURYSM", "t2_sax", (BRIGHT, DARK), 3),  # mixed
        ("AU-INFARCT", "t2_sax", (MUSCLE, DARK), 1.8),  # low
        ("AU-STENOSIS", "t2_sax", (BRIGHT, MUSCLE), 1.5),
        ("AU-STENOSIS", "t2_sax", ((121,), MUSCLE), 1.5),
        ("AU-PERICARDITIS", "t2_sax", (BRIGHT, MUSCLE), 1.7),
    ],
)
def test_signal_of_lesions_and_of_their_dark_cores(name, view, tissues, least, size):
    found, (brighter, darker) = shown(name, view, size), tissues
    assert found.mean(brighter) > least * found.mean(darker)


def test_enhancing_pericardium_surrounds_both_ventricles():
    """Bright fluid in every direction from the long axis, in the middle of the stack."""
    found = shown("AU-PERICARDITIS", "lge_sax", "default")
    number = found.number(0.45)
    bright = (found.frames[number] > 0.6) & (found.masks[number] == codes.LESION + codes.FLUID)
    assert len(np.unique(found.phi[bright] // 20)) >= 17  # of 18 sectors


def test_cavity_is_a_spade_at_end_diastole():
    """Width of the blood in four chambers at the apical and the basal level."""
    for name, low, high in (("AU-SPADE", 0.2, 0.45), ("NORMAL", 0.5, 0.65)):
        found = shown(name, "cine_4ch", "default")
        frame, length = found.frames[found.number()], found.heart.parameters.length
        axis = int(np.argmin(np.abs(found.steps - 20)))
        apical, basal = (
            len(run_at(frame[found.row(share * length)] > BLOOD, axis)) for share in (0.825, 0.175)
        )
        assert low < apical / basal < high


def run_at(bright, column):
    labels, _ = ndimage.label(bright)
    return np.flatnonzero(labels == labels[column])


def test_aortic_valve_hardly_opens_or_outflow_is_obstructed_below_it():
    """Dark share of the root just above the valve in mid-systole, and what darkens it."""
    shares = {}
    for name in ("NORMAL", "AU-STENOSIS", "AU-OBSTRUCTIVE"):
        found = shown(name, "cine_3ch", "default")
        p, number = found.heart.parameters, found.number(0.5, 5)
        base = p.mapse * activation(0.2, p.early_filling)
        rows = slice(found.row(base - 3), found.row(base - 11))
        columns = slice(0, found.row(found.planes[0].centre[2]) - 2)  # left of the long axis: no mitral jet
        root = np.isin(found.masks[number], (codes.AORTA, codes.JET, codes.LEAFLET))[rows, columns]
        leaflet = (found.masks[number] == codes.LEAFLET)[rows, columns]
        dark = found.frames[number][rows, columns] < BLOOD
        shares[name] = ((root & dark).sum() / root.sum(), (leaflet & dark).sum() / root.sum())
    assert shares["NORMAL"] == (0, 0)
    assert shares["AU-STENOSIS"][1] > 0.15
    assert shares["AU-OBSTRUCTIVE"][0] > 0.1
    assert shares["AU-OBSTRUCTIVE"][1] == 0


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


def test_studies_have_every_value_but_one():
    """The values of the 32 fields; no slice of the first pass reaches the apex."""
    seen = {(name, value) for study_id in IDS for name, values in known(study_id) for value in values}
    assert {(name, value) for name, values in VALUES.items() for value in values.split()} - seen == {
        ("perfusion.segments", "apex")
    }


def known(study_id):
    return findings(study(2026, study_id).truth).items()
