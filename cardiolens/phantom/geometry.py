"""The equations of the heart (protocol 10.1): pure functions of parameters, activation and position.

Coordinates are in mm. The origin is the centre of the mitral plane at end-diastole; x points lateral,
y anterior, z to the apex.
Points pass through +, -, *, / and square roots only: IEEE 754 rounds these exactly, so a voxel is the same
tissue on every machine. Sines, cosines and exponentials come from small tables rounded to 1e-9. The angle
around the long axis is binned to half a degree.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.parameters import Parameters
from cardiolens.protocol.tasks.segments import LEVELS, SEGMENTS, segments_at

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

ANGLES = 720  # bins of the angle phi, centred on multiples of half a degree
HEIGHTS = 401  # bins of the height u: 0 base .. 1 tip of the cavity
END_SYSTOLE = 0.38  # as a share of the cycle
RV_LENGTH = 0.85  # share of the LV length
LEVEL_ENDS = (0.35, 0.70, 0.95)  # upper limits of the basal, mid and apical level in u
APEX = LEVEL_ENDS[-1]  # u at which the apical cap begins
_APEX_BIN = round(APEX * (HEIGHTS - 1))

_SMOOTH_ANGLE = 8 * np.arange(-3, 4)  # bins: 4 degrees apart
_SMOOTH_HEIGHT = 8 * np.arange(-2, 3)  # bins: 0.02 apart


def smoothstep(x: float) -> float:
    """Return 3x^2 - 2x^3 for x clipped to [0, 1]."""
    x = min(max(x, 0.0), 1.0)
    return x * x * (3 - 2 * x)


def cosine(degrees: float) -> float:
    """Return the cosine, rounded to 1e-9 so that all machines agree."""
    return round(math.cos(math.radians(degrees)), 9)


def sine(degrees: float) -> float:
    """Return the sine, rounded to 1e-9 so that all machines agree."""
    return round(math.sin(math.radians(degrees)), 9)


def activation(t: float, early_filling: float) -> float:
    """Return the contraction a(t) at cycle time t in [0, 1): 0 at end-diastole, 1 at end-systole."""
    if t <= END_SYSTOLE:
        return round(0.5 * (1 - math.cos(math.pi * t / END_SYSTOLE)), 9)
    early = smoothstep((t - END_SYSTOLE) / 0.18)
    late = smoothstep((t - 0.85) / 0.12)
    return 1 - (early_filling * early + (1 - early_filling) * late)


def delayed(t: float, delay: float) -> float:
    """Cycle time of the contraction that a late segment has at t; all segments share the end of the cycle."""
    if t <= END_SYSTOLE + delay:
        return max(t - delay, 0.0)
    return END_SYSTOLE + (t - END_SYSTOLE - delay) * (1 - END_SYSTOLE) / (1 - END_SYSTOLE - delay)


@cache
def segment_map() -> NDArray[np.uint8]:
    """Return the AHA segment of every (angle, height) bin; shape (ANGLES, HEIGHTS)."""
    return _rings()[:, _level_of(np.arange(HEIGHTS) / (HEIGHTS - 1))]


@cache
def _rings() -> NDArray[np.uint8]:
    """Return the AHA segment of every angle at each level; shape (ANGLES, levels)."""
    phi = np.arange(ANGLES) * (360 / ANGLES)
    return np.stack([segments_at(phi, level) for level in LEVELS], axis=1).astype(np.uint8)


def _level_of(u: Floats) -> Ints:
    return np.searchsorted(LEVEL_ENDS, u, side="right")


def segment_middle(segment: int) -> tuple[int, int]:
    """Return the (angle, height) bin in the middle of a segment; for the apical cap, its tip."""
    if segment <= 12:
        degrees, u = (90 + 60 * ((segment - 1) % 6)) % 360, (0.175, 0.525)[(segment - 1) // 6]
    else:
        degrees, u = 90 * ((segment - 12) % 4), 0.825 if segment < 17 else 1.0
    return degrees * ANGLES // 360, round(u * (HEIGHTS - 1))


def smoothed(value_in: Callable[[int], float]) -> Floats:
    """Return one value per segment as a field: means over +-12 degrees x +-0.04 u, 7 x 5 samples."""
    values = np.array([0.0, *(value_in(segment) for segment in SEGMENTS)])
    if np.all(values[1:] == values[1]):
        return np.broadcast_to(values[1], (ANGLES, HEIGHTS))
    rings = values[_rings()]  # (angle, level)
    around = sum(np.roll(rings, step, axis=0) for step in _SMOOTH_ANGLE) / len(_SMOOTH_ANGLE)
    field = np.zeros((ANGLES, HEIGHTS))
    for level, share in enumerate(_level_shares()):
        # no matrix product: its rounding may differ between machines
        field += np.asarray(around)[:, level, None] * share
    return field


@cache
def _level_shares() -> Floats:
    """Return the share of each level in the box around every height; shape (levels, HEIGHTS)."""
    level = _level_of(np.arange(HEIGHTS) / (HEIGHTS - 1))
    samples = np.clip(np.arange(HEIGHTS)[:, None] + _SMOOTH_HEIGHT, 0, HEIGHTS - 1)
    return np.stack([np.mean(level[samples] == level_index, axis=1) for level_index in range(4)])


@dataclass(frozen=True)
class Heart:
    """The parameters of a heart and their smoothed fields over (angle, height)."""

    parameters: Parameters

    def at(self, t: float) -> "Heart":
        """Return the heart with late segments that move as much less, or more, as they do at cycle time t."""
        p = self.parameters
        a = activation(t, p.early_filling)
        if not p.delay_of or not a:
            return self
        late = {number: self.contraction(t, number) / a for number in SEGMENTS}
        motion = {number: p.motion_of.get(number, 1.0) * share for number, share in late.items()}
        return replace(self, parameters=replace(p, motion_of=motion))

    def contraction(self, t: float, segment: int) -> float:
        """Return the activation of one segment at cycle time t."""
        p = self.parameters
        return activation(delayed(t, p.delay_in(segment)), p.early_filling)

    @cached_property
    def wall(self) -> Floats:
        """Wall thickness w, mm."""
        return smoothed(self.parameters.wall_in)

    @cached_property
    def outer(self) -> Floats:
        """Cavity radius at the base R + b, mm."""
        p = self.parameters
        return p.radius + smoothed(lambda segment: p.bulge_of.get(segment, 0.0))

    @cached_property
    def thickest(self) -> float:
        """Upper bound of the epicardial radius at end-diastole, mm."""
        return float(self.outer.max() + self.wall.max())

    @cached_property
    def shortening(self) -> Floats:
        """Fractional shortening k c."""
        p = self.parameters
        return smoothed(lambda segment: p.motion_of.get(segment, 1.0) * p.contraction)


@dataclass(frozen=True)
class Radii:
    """Radii around the long axis at given points, mm; 0 without a cavity or a wall."""

    cavity: Floats
    epicardium: Floats


def base_plane(p: Parameters, a: float) -> float:
    """Return z of the mitral plane, mm."""
    return p.mapse * a


def tricuspid_plane(p: Parameters, a: float) -> float:
    """Return z of the tricuspid plane, mm."""
    return p.tapse * a


def height_bin(p: Parameters, a: float, z: Floats) -> Ints:
    """Return the bin of u = (z - z_b) / (L - z_b), clipped to [0, 1]."""
    z_b = base_plane(p, a)
    u = (z - z_b) * ((HEIGHTS - 1) / (p.length - z_b))
    return np.clip(np.rint(u), 0, HEIGHTS - 1).astype(np.intp)


def lv_radii(heart: Heart, a: float, angle: Ints, z: Floats) -> Radii:
    """Return cavity and epicardial radius of the left ventricle at angle bins and heights z.

    r = (R + b) sqrt(1 - u^2) (1 - a k c); r_e = sqrt(r^2 + ((r0 + w)^2 - r0^2) L / (L - z_b)), which
    conserves the volume of the wall. A paraboloid closes the epicardium, from r_e where the apical cap begins
    to 0 at L + w_a.
    """
    p = heart.parameters
    z_b = base_plane(p, a)
    u = np.clip((z - z_b) / (p.length - z_b), 0.0, 1.0)
    wall = _beside_cavity(heart, a, (angle, height_bin(p, a, z)), u)
    epicardium = around_lv(heart, a, angle, z, wall.epicardium)
    above = z < z_b
    return Radii(np.where(above | (z > p.length), 0.0, wall.cavity), np.where(above, 0.0, epicardium))


def around_lv(heart: Heart, a: float, angle: Ints, z: Floats, far: Floats, *, gap: float = 0.0) -> Floats:
    """Return the radius of the surface at distance `gap` outside the left ventricle.

    `far` is the epicardial radius beside the cavity. A paraboloid closes the surface over the apical cap.
    """
    p = heart.parameters
    z_b, tip = base_plane(p, a), p.length + p.cap + gap
    edge = z_b + APEX * (p.length - z_b)
    rim = _beside_cavity(heart, a, (np.arange(ANGLES), np.full(ANGLES, _APEX_BIN)), np.full(ANGLES, APEX))
    left = np.sqrt(np.clip((tip - z) / (tip - edge), 0.0, 1.0))
    return np.where(z > edge, (rim.epicardium[angle] + gap) * left, far + gap)


def _beside_cavity(heart: Heart, a: float, at: tuple[Ints, Ints], u: Floats) -> Radii:
    """Return cavity and epicardial radius at (angle, height) bins and heights u."""
    p = heart.parameters
    wall, rest = heart.wall[at], heart.outer[at] * np.sqrt(1 - u * u)
    cavity = rest * (1 - a * heart.shortening[at])
    longer = p.length / (p.length - base_plane(p, a))
    return Radii(cavity, np.sqrt(cavity * cavity + wall * (2 * rest + wall) * longer))


@dataclass(frozen=True)
class Egg:
    """Cross-sections of the right ventricle: one half ellipse on each side of x = centre, mm."""

    centre: Floats
    left: Floats
    right: Floats
    vertical: Floats
    height: Floats  # u_r, 0 tricuspid plane .. 1 apex


def rv_egg(heart: Heart, a: float, z: Floats) -> Egg:
    """Return the right ventricle at heights z: left 0.5 R_e + W - d, right d / 0.6, d = 0.35 W."""
    p = heart.parameters
    z_r = tricuspid_plane(p, a)
    u = np.clip((z - z_r) / (RV_LENGTH * p.length - z_r), 0.0, 1.0)
    width = p.rv_width * np.sqrt(1 - u * u) * (1 - a * p.rv_contraction)
    septal = np.full(z.shape, ANGLES // 2, dtype=np.intp)
    # above the mitral plane the septum keeps its radius at the mitral plane
    r_e = lv_radii(heart, a, septal, np.maximum(z, base_plane(p, a))).epicardium
    d = 0.35 * width
    return Egg(-0.5 * r_e - d, 0.5 * r_e + width - d, d / 0.6, 1.0825 * r_e, u)


@dataclass(frozen=True)
class Points:
    """Flat arrays over points: position in mm, distance from the long axis in mm, and bin of the angle."""

    x: Floats
    y: Floats
    z: Floats
    rho: Floats
    angle: Ints
    heights: Floats  # distinct values of z
    at_height: Ints  # index into `heights`

    def __len__(self) -> int:
        return len(self.x)

    def take(self, where: Ints) -> "Points":
        """Return a subset of the points; `heights` keeps all its values."""
        x, y, z, rho = (array[where] for array in (self.x, self.y, self.z, self.rho))
        return Points(x, y, z, rho, self.angle[where], self.heights, self.at_height[where])


def points(x: Floats, y: Floats, z: Floats) -> Points:
    """Return points from their coordinates."""
    turns = np.arctan2(y, x) * (ANGLES / (2 * np.pi))
    heights, at_height = np.unique(z, return_inverse=True)
    return Points(
        x, y, z, np.sqrt(x * x + y * y), np.rint(turns).astype(np.intp) % ANGLES, heights, at_height
    )


BUMP_DIRECTION = (cosine(205), sine(205))  # seen from the centre of the cross-section: the inferior free wall
_BUMP_EDGE = cosine(22)  # the bump ends 22 degrees from its middle
BUMP_HEIGHT, _BUMP_HALF_HEIGHT = 0.40, 0.20  # in u_r


def bump_radius(p: Parameters, a: float, cos: Floats, sin: Floats, height: Floats) -> Floats:
    """Return the outward displacement of the free wall, mm, by direction from the centre and height u_r."""
    size = p.rv_bump + p.rv_bump_growth * a
    across = np.clip(
        (cos * BUMP_DIRECTION[0] + sin * BUMP_DIRECTION[1] - _BUMP_EDGE) / (1 - _BUMP_EDGE), 0.0, 1.0
    )
    along = (height - BUMP_HEIGHT) / _BUMP_HALF_HEIGHT
    return np.asarray(size * across * np.clip(1 - along * along, 0.0, None))
