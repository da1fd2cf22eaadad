"""Points of a plane in heart coordinates, with their time-independent quantities."""

from dataclasses import dataclass

import numpy as np

from cardiolens.phantom.geometry import ANGLES, Floats, Ints


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
