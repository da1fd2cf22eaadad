"""Volumes and ejection fractions of a modelled heart, at end-diastole (a = 0) and end-systole (a = 1)."""

from dataclasses import dataclass

import numpy as np

from cardiolens.phantom.geometry import (
    ANGLES,
    RV_LENGTH,
    Egg,
    Floats,
    Heart,
    activation,
    base_plane,
    bump_radius,
    lv_radii,
    rv_egg,
    tricuspid_plane,
)

_ANGLE_STEP = 6  # bins: 120 angles
_PLANES = 60
_MOMENTS = 50  # of the cycle


@dataclass(frozen=True)
class Measures:
    """Volumes indexed by body surface area in mL/m2, and ejection fractions in percent."""

    lv_edv_index: float
    lv_ef: float
    rv_edv_index: float
    rv_ef: float


def measure(heart: Heart) -> Measures:
    """Measure a heart by integrating its cavities, papillary muscles included, on 60 x 120 grids (10.4)."""
    lv_ed, lv_es = lv_volume(heart, 0.0), smallest_lv_volume(heart)
    rv_ed, rv_es = (rv_volume(heart, a) for a in (0.0, 1.0))
    bsa = heart.parameters.bsa
    return Measures(
        lv_edv_index=round(lv_ed / bsa, 6),
        lv_ef=round(100 * (lv_ed - lv_es) / lv_ed, 6),
        rv_edv_index=round(rv_ed / bsa, 6),
        rv_ef=round(100 * (rv_ed - rv_es) / rv_ed, 6),
    )


def smallest_lv_volume(heart: Heart) -> float:
    """Return the end-systolic volume of the LV cavity, mL: at full activation unless walls are late."""
    p = heart.parameters
    if not p.delay_of:
        return lv_volume(heart, 1.0)
    times = [number / _MOMENTS for number in range(_MOMENTS)]
    return min(lv_volume(heart.at(t), activation(t, p.early_filling)) for t in times)


def lv_volume(heart: Heart, a: float) -> float:
    """Return the volume of the left ventricular cavity, mL."""
    p = heart.parameters
    z, dz = _midpoints(base_plane(p, a), p.length)
    angle = np.arange(0, ANGLES, _ANGLE_STEP)
    radius = lv_radii(heart, a, angle[None, :], z[:, None]).cavity
    return float(np.sum(radius * radius)) * 0.5 * dz * (2 * np.pi / len(angle)) / 1000


def rv_volume(heart: Heart, a: float) -> float:
    """Return the RV cavity volume, mL: the egg outside the left ventricle plus its outpouching."""
    p = heart.parameters
    z, dz = _midpoints(tricuspid_plane(p, a), RV_LENGTH * p.length)
    egg = rv_egg(heart, a, z)
    bins = np.arange(ANGLES // 4, 3 * ANGLES // 4 + 1, 2)  # 90 .. 270 degrees, every degree
    far = _far_side(egg, np.deg2rad(bins * (360 / ANGLES)))
    near = lv_radii(heart, a, bins[None, :], np.maximum(z, base_plane(p, a))[:, None]).epicardium
    area = 0.5 * np.clip(far * far - near * near, 0.0, None).sum(axis=1) * np.deg2rad(1.0)
    return float(area.sum() * dz + _bump_volume(heart, a, egg, dz)) / 1000


def _midpoints(low: float, high: float) -> tuple[Floats, float]:
    dz = (high - low) / _PLANES
    return np.asarray(low + dz * (np.arange(_PLANES) + 0.5), dtype=np.float64), dz


def _far_side(egg: Egg, phi: Floats) -> Floats:
    """Return the radius at which a ray leaves the egg, 0 if it misses; shape (planes, angles)."""
    cos, sin = np.cos(phi)[None, :], np.sin(phi)[None, :]
    centre, vertical = egg.centre[:, None], egg.vertical[:, None]
    left = _leaves(centre, egg.left[:, None], vertical, cos, sin)
    right = _leaves(centre, np.maximum(egg.right[:, None], 1e-9), vertical, cos, sin)
    return np.where(left * cos <= centre, left, right)


def _leaves(centre: Floats, half_width: Floats, half_height: Floats, cos: Floats, sin: Floats) -> Floats:
    a = (cos / half_width) ** 2 + (sin / half_height) ** 2
    b = -2 * centre * cos / half_width**2
    c = (centre / half_width) ** 2 - 1
    root = b * b - 4 * a * c
    return np.where(root > 0, (-b + np.sqrt(np.clip(root, 0, None))) / (2 * a), 0.0)


def _bump_volume(heart: Heart, a: float, egg: Egg, dz: float) -> float:
    """Return the volume of the outpouching outside the egg, mm3; it never overlaps the left ventricle."""
    theta = np.deg2rad(np.arange(91, 270, 2.0))  # the left half
    cos, sin = np.cos(theta)[None, :], np.sin(theta)[None, :]
    bump = bump_radius(heart.parameters, a, cos, sin, egg.height[:, None])
    radius = 1 / np.sqrt((cos / egg.left[:, None]) ** 2 + (sin / egg.vertical[:, None]) ** 2)
    return float(0.5 * ((radius + bump) ** 2 - radius**2).sum() * np.deg2rad(2.0) * dz)
