"""Anatomy above the ventricles: atria, aortic root, valves and jets (protocol 10.1)."""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes
from cardiolens.phantom.geometry import (
    END_SYSTOLE,
    Floats,
    Points,
    base_plane,
    cosine,
    sine,
    smoothstep,
    tricuspid_plane,
)
from cardiolens.phantom.parameters import Parameters

Codes = NDArray[np.uint8]
Spot = tuple[float, float]  # x, y

_WALL_MM = 2.0  # wall thickness of atria and aorta
_ANNULUS_MM = 4.0
_AORTA_MM, _AORTA_LENGTH_MM = 11.0, 62.0
_AORTA_OFF_AXIS_MM = 15.0  # minimum: 13 from the four-chamber plane, which the root must not cross
_AORTA_STRAIGHT_MM, _AORTA_LEAN = 4.0, 0.4  # straight length of the root; above it, mm aside per mm up
_PULMONARY_LEAN = 0.2  # as of the aorta
_STENOTIC_MM, _DOMING = 1.8, 0.5  # half the thickness of a stenotic leaflet; mm up per mm inward
_LEAFLET_MM = 1.0  # half the thickness of a leaflet
_NORMAL_OPENING, _RESTRICTED_OPENING = 70.0, 25.0  # degrees
_JET_SLOPE = 0.212556562  # tan 12 degrees
_OUTFLOW_TIME = (0.08, 0.34)
_SAM_TIME = (0.15, 0.32)


def paint(p: Parameters, where: Points, t: float, a: float, painted: Codes, *, valves: bool) -> None:
    """Paint the base of the heart over `painted`, in place; with leaflets and jets if `valves`."""
    z_b, z_r = base_plane(p, a), tricuspid_plane(p, a)
    near = np.flatnonzero(
        (where.z < max(z_b, z_r) + (0.7 * p.radius + p.jet_length if valves else 0.0))
        & (where.x > tricuspid_centre(p)[0] - 1.2 * p.ra_radius)
        & (where.x < p.radius + p.wall + p.la_radius)
        & (np.abs(where.y) < p.radius + p.wall + 1.2 * max(p.ra_radius, p.la_radius))
    )
    if not len(near):
        return
    at, old_codes = where.take(near), painted[near]
    if at.z.min() < max(z_b, z_r):
        _paint_chambers(p, at, a, old_codes)
    if valves:
        _paint_leaflets(p, at, t, a, old_codes)
        _paint_jets(p, at, t, a, old_codes)
    painted[near] = old_codes


def toward(degrees: float, distance: float) -> Spot:
    """Return the (x, y) position at a distance from the long axis in a direction."""
    return distance * cosine(degrees), distance * sine(degrees)


def mitral_centre(p: Parameters) -> Spot:
    return toward(330, 0.25 * p.radius)


def tricuspid_centre(p: Parameters) -> Spot:
    return toward(210, p.radius + p.wall + 0.4 * p.rv_width)


def aortic_centre(p: Parameters) -> Spot:
    return toward(150, _aortic_off_axis(p))


def _aortic_off_axis(p: Parameters) -> float:
    return max(0.55 * p.radius, _AORTA_OFF_AXIS_MM)


def pulmonary_reach(p: Parameters) -> float:
    """Return an upper bound of |y| in the pulmonary artery, mm."""
    lean = _PULMONARY_LEAN * _AORTA_LENGTH_MM
    return (_pulmonary_off_axis(p) + lean) * sine(150) + p.pulmonary_artery + _WALL_MM


def _pulmonary_off_axis(p: Parameters) -> float:
    """Return the distance of the pulmonary artery's middle from the long axis: just before the aorta."""
    return _aortic_off_axis(p) + _AORTA_MM + 4 * _WALL_MM + p.pulmonary_artery


def _mitral_radius(p: Parameters) -> float:
    return 0.6 * p.radius


def _tricuspid_radius(p: Parameters) -> float:
    return 0.4 * p.rv_width


def _from_axis(at: Points, spot: Spot) -> Floats:
    dx, dy = at.x - spot[0], at.y - spot[1]
    return np.asarray(np.sqrt(dx * dx + dy * dy))


def _paint_chambers(p: Parameters, at: Points, a: float, tissue_codes: Codes) -> None:
    """Paint the atria (spheres joined to their ventricles by an annulus) and the aortic root before them."""
    z_b, z_r = base_plane(p, a), tricuspid_plane(p, a)
    la = _atrium(at, mitral_centre(p), z_b, p.la_radius, a=a, orifice=_mitral_radius(p))
    ra = _atrium(at, tricuspid_centre(p), z_r, p.ra_radius, a=a, orifice=_tricuspid_radius(p))
    root = _vessel(at, z_b, aortic_centre(p), _AORTA_MM, _AORTA_LEAN)
    free = codes.SURROUNDINGS[tissue_codes] | (tissue_codes % codes.LESION == codes.FLUID)
    lv_ring = (at.z < z_b) & (at.z > z_b - _ANNULUS_MM) & (at.rho < p.radius + p.wall)
    nearest = np.minimum(np.minimum(la, ra), root)
    tissue_codes[free & ((nearest < _WALL_MM) | lv_ring)] = codes.BASE_WALL
    septum = np.abs(la - ra) < _WALL_MM
    tissue_codes[free & (la < 0) & (la <= ra) & ~septum] = codes.LA_BLOOD
    tissue_codes[free & (ra < 0) & (ra < la) & ~septum] = codes.RA_BLOOD
    in_root = free & (root < _WALL_MM)
    tissue_codes[in_root] = np.where(root[in_root] < 0, codes.AORTA, codes.BASE_WALL)
    if p.pulmonary_artery:
        centre = toward(150, _pulmonary_off_axis(p))
        vessel = _vessel(at, z_r, centre, p.pulmonary_artery, _PULMONARY_LEAN)
        there = codes.SURROUNDINGS[tissue_codes] & (vessel < _WALL_MM)
        tissue_codes[there] = np.where(vessel[there] < 0, codes.PULMONARY_ARTERY, codes.BASE_WALL)


def _vessel(at: Points, plane: float, centre: Spot, radius: float, lean_per_mm: float) -> Floats:
    """Return the distance outside a great vessel, mm, negative inside; it leans away from the LA."""
    lean = lean_per_mm * np.clip(plane - at.z - _AORTA_STRAIGHT_MM, 0.0, None)
    x, y = centre
    dx, dy = at.x - (x + lean * cosine(150)), at.y - (y + lean * sine(150))
    tube = np.sqrt(dx * dx + dy * dy) - radius
    return np.where((at.z < plane) & (at.z > plane - _AORTA_LENGTH_MM), tube, 99.0)


def _atrium(at: Points, spot: Spot, plane: float, radius: float, *, a: float, orifice: float) -> Floats:
    """Return the distance outside an atrium, mm, negative inside; 99 on the ventricular side of its valve."""
    axial = _from_axis(at, spot)
    dz = at.z - (plane - 0.95 * radius)
    sphere = np.sqrt(axial * axial + dz * dz) - radius * (1 + 0.12 * a)
    vestibule = np.where(dz > 0, axial - orifice, 99.0)
    return np.where(at.z < plane, np.minimum(sphere, vestibule), 99.0)


def opening(t: float) -> float:
    """Return the opening of the AV valves, 0 .. 1: early filling, diastasis, atrial contraction."""
    early = smoothstep((t - END_SYSTOLE) / 0.06) - 0.5 * smoothstep((t - 0.60) / 0.10)
    late = 0.5 * smoothstep((t - 0.84) / 0.05)
    return (early + late) * (1 - smoothstep((t - 0.96) / 0.04))


def _paint_leaflets(p: Parameters, at: Points, t: float, a: float, tissue_codes: Codes) -> None:
    z_b, z_r = base_plane(p, a), tricuspid_plane(p, a)
    widest = _RESTRICTED_OPENING if p.restricted_mitral_opening else _NORMAL_OPENING
    mitral = _leaflet(at, mitral_centre(p), z_b, _mitral_radius(p), widest * opening(t))
    tissue_codes[mitral & ((tissue_codes == codes.LV_BLOOD) | (tissue_codes == codes.LA_BLOOD))] = (
        codes.LEAFLET
    )
    tricuspid = _leaflet(at, tricuspid_centre(p), z_r, _tricuspid_radius(p), _NORMAL_OPENING * opening(t))
    tissue_codes[tricuspid & ((tissue_codes == codes.RV_BLOOD) | (tissue_codes == codes.RA_BLOOD))] = (
        codes.LEAFLET
    )
    if t > END_SYSTOLE or t < 0.04:
        closed = np.abs(at.z - (z_b - 3)) < _LEAFLET_MM
        tissue_codes[closed & (tissue_codes == codes.AORTA)] = codes.LEAFLET
    elif p.aortic_opening < 1:
        inward = _AORTA_MM - _from_axis(at, aortic_centre(p))
        domed = np.abs(at.z - (z_b - 3 - _DOMING * inward)) < _STENOTIC_MM
        ring = domed & (inward < _AORTA_MM * (1 - p.aortic_opening))
        tissue_codes[ring & (tissue_codes == codes.AORTA)] = codes.LEAFLET
    if p.systolic_anterior_motion and _SAM_TIME[0] <= t <= _SAM_TIME[1]:
        tissue_codes[_bent_leaflet(p, at, z_b) & (tissue_codes == codes.LV_BLOOD)] = codes.LEAFLET


def _leaflet(at: Points, spot: Spot, plane: float, radius: float, degrees: float) -> NDArray[np.bool_]:
    """Mask a funnel hinged on a ring: flat if closed, else leaning into the ventricle by `degrees`."""
    return _near_line(
        _from_axis(at, spot), at.z - plane, (radius, 0.0), (-cosine(degrees), sine(degrees)), radius
    )


def _near_line(u: Floats, v: Floats, start: Spot, direction: Spot, length: float) -> NDArray[np.bool_]:
    du, dv = u - start[0], v - start[1]
    along = np.clip(du * direction[0] + dv * direction[1], 0.0, length)
    du, dv = du - along * direction[0], dv - along * direction[1]
    return np.asarray(du * du + dv * dv < _LEAFLET_MM**2)


def _bent_leaflet(p: Parameters, at: Points, z_b: float) -> NDArray[np.bool_]:
    """Mask the anterior mitral leaflet with its tip at the septum (systolic anterior motion)."""
    along = at.x * cosine(150) + at.y * sine(150)
    aside = at.x * sine(150) - at.y * cosine(150)
    line = _near_line(along, at.z - z_b, (0.30 * p.radius, 0.0), (cosine(60), sine(60)), 0.9 * p.radius)
    return line & (np.abs(aside) < 10)


def _paint_jets(p: Parameters, at: Points, t: float, a: float, tissue_codes: Codes) -> None:
    """Paint jets as dark cones of half-angle 12 degrees, from the orifice along the long axis."""
    z_b, z_r = base_plane(p, a), tricuspid_plane(p, a)
    systole, axis = t <= END_SYSTOLE, (0.0, 0.0)
    tips = z_b + _mitral_radius(p) * sine(_RESTRICTED_OPENING * opening(t))
    narrowed = z_b - 3 - _DOMING * _AORTA_MM * (1 - p.aortic_opening)
    ejecting = _OUTFLOW_TIME[0] <= t <= _OUTFLOW_TIME[1]
    jets = (
        (p.mitral_regurgitation and systole, axis, z_b, -1, codes.LA_BLOOD),
        (p.tricuspid_regurgitation and systole, tricuspid_centre(p), z_r, -1, codes.RA_BLOOD),
        (p.outflow_jet and ejecting, aortic_centre(p), z_b, -1, codes.AORTA),
        (p.aortic_opening < 1 and ejecting, aortic_centre(p), narrowed, -1, codes.AORTA),
        (p.aortic_regurgitation and not systole, aortic_centre(p), z_b, 1, codes.LV_BLOOD),
        (p.restricted_mitral_opening and opening(t) > 0.3, axis, tips, 1, codes.LV_BLOOD),
    )
    for flows, spot, origin, way, blood in jets:
        if flows:
            ahead = (at.z - origin) * way
            cone = (ahead >= 0) & (ahead <= p.jet_length) & (_from_axis(at, spot) <= 1 + _JET_SLOPE * ahead)
            tissue_codes[cone & (tissue_codes == blood)] = codes.JET
