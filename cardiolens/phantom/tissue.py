"""Tissue code of each point at a moment of the cardiac cycle."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import basal_anatomy as base
from cardiolens.phantom import codes
from cardiolens.phantom.geometry import (
    ANGLES,
    HEIGHTS,
    RV_LENGTH,
    Floats,
    Heart,
    Ints,
    Points,
    activation,
    around_lv,
    base_plane,
    bump_radius,
    cosine,
    height_bin,
    lv_radii,
    rv_egg,
    segment_map,
    sine,
    tricuspid_plane,
)
from cardiolens.phantom.lesions import Lesions

Codes = NDArray[np.uint8]

_PERICARDIUM_MM = 3.0  # of enhancing pericardium
_PAPILLARY_MM, _PAPILLARY_CORE_MM = 4.5, 2.8
_PAPILLARY_ANGLES = (45, 250)
_PAPILLARY_HEIGHTS = (0.35, 0.75)
_HALF_SPACES = (  # code, direction from the long axis (degrees), distance (mm); later entries win
    (codes.LUNG, 20, 52.0),
    (codes.LUNG, 75, 66.0),
    (codes.LIVER, 262, 52.0),
    (codes.CHEST_MUSCLE, 148, 82.0),
    (codes.CHEST_FAT, 148, 92.0),
    (codes.AIR, 148, 106.0),
)
_BEYOND_APEX = ((codes.CHEST_MUSCLE, 118.0), (codes.CHEST_FAT, 124.0), (codes.AIR, 140.0))  # code, z in mm
_AORTA_PLACE, _AORTA_MM, _AORTA_WALL_MM = (46.0, -46.0), 10.0, 2.0
_PLEURA_MIDDLE, _PLEURA_HALF = (-10.0, 40.0), (55.0, 60.0)  # along the lung's border and along z, mm


@dataclass(frozen=True)
class Scene:
    """A heart with the lesions that one sequence shows, and the distractors, which change no label (10.2)."""

    heart: Heart
    lesions: Lesions
    valves: bool = False  # leaflets and jets, which only cine resolves
    fat_mm: float = 0.0  # thickness of epicardial fat
    slow_flow: bool = False  # along the apical cavity edge
    rim_mm: float = 0.0  # depth of the subendocardial band that may darken in perfusion

    def plain(self) -> "Scene":
        """Return the scene without distractors."""
        return Scene(self.heart, self.lesions, self.valves)


def tissue(scene: Scene, where: Points, t: float, ground: Codes | None = None) -> Codes:
    """Paint the heart at a time of the cycle over `ground`; return the tissue code of every point.

    Shape (len(where),). At t = 0, end-diastole, it stands as all static sequences show it.
    """
    scene = replace(scene, heart=scene.heart.at(t))
    p = scene.heart.parameters
    a = activation(t, p.early_filling)
    painted = surroundings(where, p.pleural_fluid) if ground is None else ground.copy()
    _paint_rv(scene, where, a, painted)
    _paint_lv(scene, where, a, painted)
    base.paint(p, where, t, a, painted, valves=scene.valves)
    return painted


def heart_region(heart: Heart, where: Points) -> Ints:
    """Return the indices of points that may be heart, fluid or epicardial fat in some phase."""
    p = heart.parameters
    lv = 1.1 * heart.thickest + p.fluid + 6
    rv = lv + p.rv_width + p.rv_bump + p.rv_bump_growth + p.rv_wall
    atria = 1.2 * max(p.la_radius, p.ra_radius)
    left, right = max(rv, p.radius + p.wall + p.rv_width + atria), max(lv, p.radius + atria)
    up = max(1.1 * lv + p.rv_bump + p.rv_bump_growth, p.radius + p.wall + p.rv_width / 2 + atria)
    if p.pulmonary_artery:
        up = max(up, base.pulmonary_reach(p))
    return np.flatnonzero((where.x > -left) & (where.x < right) & (np.abs(where.y) < up))


def _paint_lv(scene: Scene, where: Points, a: float, painted: Codes) -> None:
    heart, p = scene.heart, scene.heart.parameters
    margin = p.fluid + scene.fat_mm
    reach = 1.1 * heart.thickest + margin
    near = np.flatnonzero(
        (where.rho < reach) & (where.z >= base_plane(p, a)) & (where.z < p.length + p.cap + margin)
    )
    if not len(near):
        return
    at = where.take(near)
    radii = lv_radii(heart, a, at.angle, at.z)
    outside = at.rho - radii.epicardium
    bin_ = height_bin(p, a, at.z)
    fluid, fat = (around_lv(heart, a, at.angle, at.z, radii.epicardium, gap=gap) for gap in (p.fluid, margin))
    tissue_codes = np.where(at.rho < fluid, codes.FLUID, codes.FAT).astype(np.uint8)
    if scene.lesions.pericardium:
        below = around_lv(heart, a, at.angle, at.z, radii.epicardium, gap=p.fluid - _PERICARDIUM_MM)
        tissue_codes[(at.rho < fluid) & (at.rho >= below)] += codes.LESION
    is_free = ~codes.SURROUNDINGS[painted[near]]
    keep = (outside >= 0) & ((at.rho >= fat) | is_free)
    wall = (outside < 0) & (at.rho >= radii.cavity)
    depth = (at.rho - radii.cavity) / np.maximum(radii.epicardium - radii.cavity, 1e-9)
    beyond = at.z > p.length
    depth = np.where(beyond, (at.z - p.length) / p.cap, depth)
    segment = segment_map()[at.angle, bin_]
    muscle = segment
    if scene.lesions.shapes or scene.lesions.low:
        muscle = scene.lesions.paint(segment, at.angle, bin_, depth)
    if scene.rim_mm:
        rim = (at.rho - radii.cavity < scene.rim_mm) & ~beyond
        muscle = np.where(rim & (muscle == segment), segment + codes.DARK_RIM, muscle).astype(np.uint8)
    tissue_codes[wall] = muscle[wall]
    inside = at.rho < radii.cavity
    tissue_codes[inside] = codes.LV_BLOOD
    if scene.slow_flow:
        tissue_codes[inside & (radii.cavity - at.rho < 2.5) & (bin_ > 0.6 * HEIGHTS)] = codes.SLOW_FLOW
    _paint_papillary(scene, at, a, tissue_codes)
    painted[near] = np.where(keep, painted[near], tissue_codes)


def _paint_papillary(scene: Scene, at: Points, a: float, tissue_codes: Codes) -> None:
    heart, p = scene.heart, scene.heart.parameters
    z_b = base_plane(p, a)
    u = (at.heights - z_b) / (p.length - z_b)
    within = (u >= _PAPILLARY_HEIGHTS[0]) & (u <= _PAPILLARY_HEIGHTS[1])
    if not within.any():
        return
    code = codes.PAPILLARY + (codes.LESION if scene.lesions.papillary else 0)
    for degrees in _PAPILLARY_ANGLES:
        bins = np.full(at.heights.shape, degrees * ANGLES // 360, dtype=np.intp)
        r = 0.75 * lv_radii(heart, a, bins, at.heights).cavity
        dx = at.x - (r * cosine(degrees))[at.at_height]
        dy = at.y - (r * sine(degrees))[at.at_height]
        off_axis = dx * dx + dy * dy
        column = (off_axis < _PAPILLARY_MM**2) & within[at.at_height] & (tissue_codes == codes.LV_BLOOD)
        tissue_codes[column] = code
        if scene.lesions.low_papillary:
            tissue_codes[column & (off_axis < _PAPILLARY_CORE_MM**2)] = codes.PAPILLARY + codes.OBSTRUCTION


def _paint_rv(scene: Scene, where: Points, a: float, painted: Codes) -> None:
    heart, p = scene.heart, scene.heart.parameters
    z_r, tip = tricuspid_plane(p, a), RV_LENGTH * p.length
    margin = p.rv_wall + p.fluid + scene.fat_mm
    lv = 1.1 * heart.thickest
    reach = lv + p.rv_width + p.rv_bump + p.rv_bump_growth + margin
    near = np.flatnonzero(
        ((where.z >= z_r) & (where.z < tip + margin))
        & ((where.x < 0.25 * p.rv_width + margin) & (where.x > -reach))
        & (np.abs(where.y) < 1.1 * lv + p.rv_bump + p.rv_bump_growth + margin)
    )
    if not len(near):
        return
    at = where.take(near)
    outside, toward = _outside_rv(heart, at, a)
    past = np.maximum(at.z - tip, 0.0)
    tissue_codes = np.zeros(len(at), dtype=np.uint8)
    shells = [(margin, codes.FAT), (p.rv_wall + p.fluid, codes.FLUID), (p.rv_wall, codes.RV_WALL)]
    if scene.lesions.pericardium:
        outer = p.rv_wall + p.fluid
        shells[1:2] = [(outer, codes.FLUID + codes.LESION), (outer - _PERICARDIUM_MM, codes.FLUID)]
    for thickness, code in shells:
        share = past / thickness
        tissue_codes[outside < thickness * np.sqrt(np.clip(1 - share * share, 0.0, None))] = code
    if scene.lesions.rv_free_wall:
        tissue_codes[(tissue_codes == codes.RV_WALL) & toward] += codes.LESION
    tissue_codes[(outside < 0) & (past == 0)] = codes.RV_BLOOD
    z_b = base_plane(p, a)
    if z_r < z_b:  # between the two planes, leave points within the left ventricle unpainted
        lv_side = lv_radii(heart, a, at.angle, np.maximum(at.z, z_b)).epicardium
        tissue_codes[(at.z < z_b) & (at.rho < lv_side)] = codes.BACKGROUND
    painted[near] = np.where(tissue_codes == codes.BACKGROUND, painted[near], tissue_codes)


def _outside_rv(heart: Heart, at: Points, a: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return radial distance outside the RV, mm (negative inside), and a mask of possible lesion points."""
    p = heart.parameters
    egg = rv_egg(heart, a, at.heights)
    row = at.at_height
    dx = at.x - egg.centre[row]
    half = np.where(dx < 0, egg.left[row], egg.right[row])
    across, up = dx / np.maximum(half, 1e-6), at.y / np.maximum(egg.vertical[row], 1e-6)
    share = np.maximum(np.sqrt(across * across + up * up), 1e-6)
    distance = np.maximum(np.sqrt(dx * dx + at.y * at.y), 1e-6)
    outside = distance * (1 - 1 / share)
    height = egg.height[row]
    if p.rv_bump or p.rv_bump_growth:
        outside = outside - bump_radius(p, a, dx / distance, at.y / distance, height)
    return outside, (dx < 0) & (height > 0.15) & (height < 0.75)


def surroundings(where: Points, pleural_mm: float = 0.0) -> NDArray[np.uint8]:
    """Return the code of every point without the heart; shape (len(where),).

    Pleural fluid is a crescent inside the lung's border, `pleural_mm` thick at its middle.
    """
    ground = np.full(len(where), codes.BACKGROUND, dtype=np.uint8)
    for code, degrees, distance in _HALF_SPACES:
        ground[where.x * cosine(degrees) + where.y * sine(degrees) > distance] = code
    if pleural_mm:
        code, degrees, distance = _HALF_SPACES[0]
        deep = where.x * cosine(degrees) + where.y * sine(degrees) - distance
        along = (where.y * cosine(degrees) - where.x * sine(degrees) - _PLEURA_MIDDLE[0]) / _PLEURA_HALF[0]
        up = (where.z - _PLEURA_MIDDLE[1]) / _PLEURA_HALF[1]
        ground[(deep > 0) & (deep < pleural_mm * (1 - along * along - up * up))] = codes.PLEURAL_FLUID
    for code, height in _BEYOND_APEX:
        ground[where.z > height] = code
    dx, dy = where.x - _AORTA_PLACE[0], where.y - _AORTA_PLACE[1]
    off_axis = dx * dx + dy * dy + np.where(where.z > _BEYOND_APEX[0][1], np.inf, 0.0)
    ground[off_axis < (_AORTA_MM + _AORTA_WALL_MM) ** 2] = codes.CHEST_MUSCLE
    ground[off_axis < _AORTA_MM**2] = codes.DESCENDING_AORTA
    return ground
