"""Labels found again in rendered masks, never in parameters (invariants of protocol 10.5)."""

from functools import cache

import numpy as np
import pytest
from scipy import ndimage

from cardiolens.phantom import codes
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.parameters import canonical_values
from cardiolens.phantom.planes import sizes, views
from cardiolens.phantom.render import render
from cardiolens.phantom.roster import SEQUENCES, catalogue, study
from cardiolens.phantom.signal import appearance
from cardiolens.protocol.tasks.instantiate import answer, answerable_subtasks
from cardiolens.protocol.tasks.segments import LEVELS, WALLS, touched
from cardiolens.protocol.tasks.truth import findings

MIDDLES = {1: 90, 2: 150, 3: 210, 4: 270, 5: 330, 6: 30}  # degrees of the six walls; four at the apical level
SECTOR = 12.0  # degrees to either side
SIZE = sizes()["default"]
NAMES = tuple(canonical_values())


class Stack:
    """A short-axis mask with polar coordinates around the long axis, which runs through x = 0, y = 0."""

    def __init__(self, name):
        heart = Heart(study(2026, name).parameters)
        look = appearance("easy", "seed", SIZE.spacing_mm)
        rendered = render(heart, views()["lge_sax"], SIZE, look=look, seed="seed", masks=True)
        self.codes = rendered.masks
        self.z = np.array([plane.centre[2] for plane in rendered.planes])
        steps = (np.arange(SIZE.pixels) - (SIZE.pixels - 1) / 2) * SIZE.spacing_mm
        self.x, self.y = np.meshgrid(steps - 12.0, -steps)
        self.rho = np.hypot(self.x, self.y)
        self.phi = np.rad2deg(np.arctan2(self.y, self.x)) % 360
        self.length = heart.parameters.length

    def radius(self, number, degrees, inside, half=SECTOR):
        """Radius of what is inside, mm, from its area in a sector of a slice: A = r^2 dphi / 2."""
        sector = np.abs((self.phi - degrees + 180) % 360 - 180) <= half
        pixels = np.count_nonzero(sector & inside(self.codes[number]))
        share = np.count_nonzero(sector & (self.rho < 60)) / np.count_nonzero(self.rho < 60)
        return np.sqrt(pixels * SIZE.spacing_mm**2 / (np.pi * share))

    def slices(self, level):
        """Slices well inside a level."""
        low, high = {"basal": (0.05, 0.30), "mid": (0.40, 0.65), "apical": (0.75, 0.88)}[level]
        return [n for n, z in enumerate(self.z) if low <= z / self.length <= high]


def cavity(code):
    return (code == codes.LV_BLOOD) | (code % 50 == codes.PAPILLARY)


def muscle(code):
    return (code % 50 >= 1) & (code % 50 <= 17)


def wall(code):
    return cavity(code) | muscle(code)


@cache
def stack(name):
    return Stack(name)


@cache
def truth(name):
    found = findings(study(2026, name).truth)
    return {
        one.id: set(answer(one, found))
        for one in answerable_subtasks(catalogue(), found, SEQUENCES)
        if one.options
    }


def segment_middles():
    for level, first in (("basal", 1), ("mid", 7)):
        yield from ((level, first + wall_ - 1, degrees) for wall_, degrees in MIDDLES.items())
    yield from (("apical", number, degrees) for number, degrees in ((13, 90), (14, 180), (15, 270), (16, 0)))


def bulges(masks, segment, degrees, number):
    """Whether the cavity reaches further out here than in the narrowest direction of the same ring."""
    half, ring = (30, (0, 90, 180, 270)) if segment > 12 else (18, MIDDLES.values())
    narrowest = min(masks.radius(number, other, cavity, half) for other in ring)
    u = masks.z[number] / masks.length
    return (masks.radius(number, degrees, cavity, half) - narrowest) / np.sqrt(1 - u * u) > 2.0


@pytest.mark.parametrize("name", NAMES)
def test_wall_thickness_and_contour(name):
    """C02: the thickness of every segment falls into its class, and so does its bulge."""
    masks, kinds = stack(name), set()
    known = study(2026, name).truth.segments
    for level, segment, degrees in segment_middles():
        number = masks.slices(level)[0]
        inner, outer = (masks.radius(number, degrees, what) for what in (cavity, wall))
        thickness = outer - inner
        kind = "thinned" if thickness <= 5.5 else "thickened" if thickness >= 12.0 else "normal"
        assert kind == known[segment - 1].thickness, (segment, thickness)
        kinds |= {kind} - {"normal"}
        if bulges(masks, segment, degrees, number):
            kinds.add("bulging")
    texts = {"thinned": "B", "thickened": "C", "bulging": "D"}
    assert ({texts[kind] for kind in kinds} or {"A"}) == truth(name)["C02"]


@pytest.mark.parametrize("name", [name for name in NAMES if "L02" in truth(name) and "-AU-" not in name])
def test_enhancement(name):
    """L01 to L05 from the lesion's pixels: levels, walls, right ventricle, pattern and layer."""
    masks = stack(name)
    lesion = masks.codes // codes.LESION == 1
    inside = masks.codes[lesion] % codes.LESION
    segments = set(inside[(inside >= 1) & (inside <= 17)].tolist())
    assert truth(name)["L01"] == {"B"}
    assert levels(masks, segments) == truth(name)["L02"]
    right = {"E"} if codes.RV_WALL in inside else set()
    keys = dict(zip(WALLS, "ABCD", strict=True))
    assert {keys[wall_] for wall_ in touched(segments, WALLS)} | right == truth(name)["L03"]
    left = lesion & (masks.codes % codes.LESION <= 17)
    depth = layer(masks, left)
    assert {depth} == truth(name)["L05"]
    pattern = pattern_of(segments, left, depth)
    assert {pattern} | ({"A"} if right else set()) == truth(name)["L04"]


def levels(masks, segments):
    keys = dict(zip(LEVELS, "ABCD", strict=True))
    return {keys[level] for level in touched(segments, LEVELS)}


def pattern_of(segments, left, depth):
    if len(segments) >= 12:
        return "D"
    _, islands = ndimage.label(left, structure=np.ones((3, 3, 3)))
    if islands >= 3:
        return "B"
    return "C" if len(segments) >= 3 and depth in "BC" else "A"


def layer(masks, left):
    """The layer of a lesion, from where its pixels lie between the inner and the outer border of the wall."""
    depths = []
    for number, row, column in np.argwhere(left)[::7]:
        if masks.z[number] > 0.9 * masks.length:
            continue
        degrees = masks.phi[row, column]
        inner, outer = (masks.radius(number, degrees, what, half=8) for what in (cavity, wall))
        depths.append((masks.rho[row, column] - inner) / (outer - inner))
    low, high = np.percentile(depths, [10, 90])
    if low < 0.2:
        return "D" if high > 0.75 else "A"
    return "C" if high > 0.85 else "B"


def test_every_value_of_a_mask_has_a_name():
    named = codes.labels()
    assert named[7] == "myocardium, segment 7"
    assert named[107] == "lesion, segment 7"
    for name in ("PH-ACM", "PH-ICM-LAD"):
        assert set(np.unique(stack(name).codes).tolist()) <= set(named)
