"""Check that the T2 planes of a study cut its oedema in every affected segment (protocol 16.14)."""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom.bands import GuardBandError
from cardiolens.phantom.geometry import ANGLES, HEIGHTS, segment_map
from cardiolens.phantom.lesions import Lesions
from cardiolens.phantom.parameters import LesionShape, Parameters
from cardiolens.phantom.planes import View, heights, views

_ARC_DEG = 10.0  # shortest visible arc of a lesion in a short-axis slice
_LENGTH_MM = 5.0  # shortest visible length of a lesion in a long-axis slice


def check_oedema_seen(p: Parameters) -> None:
    """Raise GuardBandError if no T2 slice cuts the oedema of some segment."""
    for shape in p.oedema:
        if unseen := [number for number in shape.segments if not _is_seen(shape, number, p)]:
            raise GuardBandError("oedema_seen", f"fails: no T2 slice cuts the lesion in segments {unseen}")


def _is_seen(shape: LesionShape, segment: int, p: Parameters) -> bool:
    (area,) = Lesions((shape,), p.length).areas
    own_area = area & (segment_map() == segment)
    return any(_cuts(view, own_area, p) for view in views().values() if view.sequence == "t2")


def _cuts(view: View, area: NDArray[np.bool_], p: Parameters) -> bool:
    """Return whether one slice of a view shows enough of an area of (angle, height) bins."""
    if view.kind == "long_axis":  # a plane through the long axis: two opposite angles, all heights
        angles = [round((view.angle + turn) * ANGLES / 360) % ANGLES for turn in (0, 180)]
        return bool(area[angles].sum(axis=1).max() * p.length / (HEIGHTS - 1) >= _LENGTH_MM)
    rows = [round(min(z / p.length, 1.0) * (HEIGHTS - 1)) for z in heights(view, p)]
    return bool(area[:, rows].sum(axis=0).max() * 360 / ANGLES >= _ARC_DEG)
