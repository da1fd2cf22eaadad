"""The outpouching of the right ventricular free wall: a local radial bump that grows in systole (10.1)."""

import numpy as np

from cardiolens.phantom.geometry import Floats, cosine, sine
from cardiolens.phantom.parameters import Parameters

DIRECTION = (cosine(205), sine(205))  # seen from the centre of the cross-section: the inferior free wall
_EDGE = cosine(22)  # the bump ends 22 degrees from its middle
HEIGHT, _HALF_HEIGHT = 0.40, 0.20  # in u_r


def bump_radius(p: Parameters, a: float, cos: Floats, sin: Floats, height: Floats) -> Floats:
    """Return the outward displacement of the free wall, mm, by direction from the centre and height u_r."""
    size = p.rv_bump + p.rv_bump_growth * a
    across = np.clip((cos * DIRECTION[0] + sin * DIRECTION[1] - _EDGE) / (1 - _EDGE), 0.0, 1.0)
    along = (height - HEIGHT) / _HALF_HEIGHT
    return np.asarray(size * across * np.clip(1 - along * along, 0.0, None))
