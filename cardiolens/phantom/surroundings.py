"""Landmarks around the heart: lung, liver, chest wall and descending aorta."""

import numpy as np
from numpy.typing import NDArray

from cardiolens.phantom import codes
from cardiolens.phantom.geometry import cosine, sine
from cardiolens.phantom.points import Points

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
