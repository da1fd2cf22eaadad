"""Check that lesions can be seen: T2 planes cut every affected segment (protocol 16.14)."""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.bands import GuardBandError, classify
from cardiolens.phantom.geometry import ANGLES, HEIGHTS, segment_map
from cardiolens.phantom.lesions import Lesions
from cardiolens.phantom.parameters import LesionShape, Parameters
from cardiolens.phantom.planes import View, heights, views

_ARC_DEG = 10.0  # shortest visible arc of a lesion in a short-axis slice
_LENGTH_MM = 5.0  # shortest visible length of a lesion in a long-axis slice


def check_seen(p: Parameters) -> None:
    """Raise GuardBandError if a lesion that the parameters name is not to be seen."""
    lesions = Lesions(p.oedema, p.length, p.t2_low)
    areas = (*lesions.areas, *lesions.low_areas)
    for shape, area in zip((*p.oedema, *p.t2_low), areas, strict=True):
        if unseen := [number for number in shape.segments if not _is_seen(area, number, p)]:
            raise GuardBandError("oedema_seen", f"fails: no T2 slice cuts the lesion in segments {unseen}")
    for core in p.lge_low:
        if not any(_lies_in(core, shape) for shape in p.lge):
            raise GuardBandError("lge_low", f"in {core.segments} lies outside continuous enhancement")
    if p.pericardial_enhancement and classify("pericardium", p.fluid) == "none":
        raise GuardBandError("pericardial_enhancement", f"cannot be shown in {p.fluid:g} mm of fluid")


def _lies_in(core: LesionShape, shape: LesionShape) -> bool:
    if not core.segments:
        return core.papillary and shape.papillary
    deep = shape.depth[0] <= core.depth[0] and core.depth[1] <= shape.depth[1]
    return deep and shape.pattern == "continuous" and set(core.segments) <= set(shape.segments)


def _is_seen(area: NDArray[np.bool_], segment: int, p: Parameters) -> bool:
    own_area = area & (segment_map() == segment)
    return any(_cuts(view, own_area, p) for view in views().values() if view.sequence == "t2")


def _cuts(view: View, area: NDArray[np.bool_], p: Parameters) -> bool:
    """Return whether one slice of a view shows enough of an area of (angle, height) bins."""
    if view.kind == "long_axis":  # a plane through the long axis: two opposite angles, all heights
        angles = [round((view.angle + turn) * ANGLES / 360) % ANGLES for turn in (0, 180)]
        return bool(area[angles].sum(axis=1).max() * p.length / (HEIGHTS - 1) >= _LENGTH_MM)
    rows = [round(min(z / p.length, 1.0) * (HEIGHTS - 1)) for z in heights(view, p)]
    return bool(area[:, rows].sum(axis=0).max() * 360 / ANGLES >= _ARC_DEG)
