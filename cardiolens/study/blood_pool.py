"""Segment the blood of the left ventricle in a short-axis cine, around the point of most motion."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

Cine = NDArray[Any]  # (slice, phase, row, column)
_REGION_MM = 45.0  # radius around the seed in which blood is separated from muscle
_SEED_MM = 12.0  # largest distance of the blood pool from the seed
_CONTRACTS = 0.9  # smallest / largest area of a slice: below this ratio the slice shows the ventricle
_FEWEST_PHASES = 5
_SAME_AREA = 0.95  # share of the largest area at which the first phase counts as end-diastole
_SAME_SHARE = 0.005  # share of a slice's largest area: measurement error of one phase


@dataclass(frozen=True, slots=True)
class BloodAreas:
    """Blood areas of the left ventricle by slice and phase, in mm2 or pixels; 0 in slices without blood."""

    by_slice_and_phase: NDArray[np.float64]

    @property
    def _middle(self) -> NDArray[np.float64]:
        """Contracting slices of the middle half; basal slices are unusable, as valves move through them."""
        areas = self.by_slice_and_phase
        quarter = len(areas) // 4
        inner = areas[quarter : len(areas) - quarter]
        contracting: NDArray[np.float64] = inner[inner.min(axis=1) < _CONTRACTS * inner.max(axis=1)]
        return contracting

    @property
    def by_phase(self) -> NDArray[np.float64]:
        """Sum of the areas over the contracting middle slices."""
        summed: NDArray[np.float64] = self._middle.sum(axis=0)
        return summed

    def found(self) -> bool:
        """Return whether the blood of at least a quarter of the slices contracts, over 5 or more phases."""
        return self.by_slice_and_phase.shape[1] >= _FEWEST_PHASES and 4 * len(self._middle) >= len(
            self.by_slice_and_phase
        )

    @property
    def end_diastole(self) -> int:
        """End-diastole: the first phase (triggered by the R wave), unless another has clearly more blood."""
        areas = self.by_phase
        return 0 if areas[0] >= _SAME_AREA * areas.max() else int(areas.argmax())

    @property
    def end_systole(self) -> int:
        """End-systole: the phase with the smallest median share of each slice's largest area."""
        return int(self._share_left.argmin())

    @property
    def tied(self) -> tuple[int, ...]:
        """Other phases whose area does not differ from that of end-systole."""
        left = self._share_left
        near = np.flatnonzero(left <= left.min() + _SAME_SHARE)
        return tuple(int(phase) for phase in near if phase != self.end_systole)

    @property
    def _share_left(self) -> NDArray[np.float64]:
        """Remaining blood by phase: the median over middle slices, robust to one slice that moved."""
        middle = self._middle
        left: NDArray[np.float64] = np.median(middle / middle.max(axis=1, keepdims=True), axis=0)
        return left

    def larger_end(self) -> int:
        """Return 1 if areas grow with the slice number, -1 if they fall, 0 if undecided."""
        largest = self.by_slice_and_phase.max(axis=1)
        inside = np.flatnonzero(largest)
        if len(inside) < 4:
            return 0
        slope = np.corrcoef(inside, largest[inside])[0, 1]
        return int(np.sign(slope)) if abs(slope) > 0.5 else 0


def moving_pixel(cine: Cine) -> tuple[float, float] | None:
    """Return row and column of the centre of strongest motion in the middle slices; None without motion."""
    middle = cine[cine.shape[0] // 3 : max(2 * cine.shape[0] // 3, cine.shape[0] // 3 + 1)].astype(np.float64)
    motion = ndimage.gaussian_filter(middle.std(axis=1).mean(axis=0), 2.0)
    strong = np.where(motion >= np.percentile(motion, 97), motion, 0.0)
    if not strong.any():
        return None
    row, column = ndimage.center_of_mass(strong)
    return float(row), float(column)


def slice_areas(phases: NDArray[np.float64], away: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the number of blood pixels of a slice by phase; zeros if no blood lies near the axis.

    `away` is the distance of each pixel from the axis in mm.
    """
    region = away < _REGION_MM
    nothing = np.zeros(len(phases))
    if np.count_nonzero(region) < 50:
        return nothing
    threshold = _otsu(phases[:, region])
    brightest = ndimage.median_filter(phases.mean(axis=0), 3) > threshold
    labels, count = ndimage.label((phases[0] > threshold) & region)
    near = np.where(away < _SEED_MM, labels, 0)
    sizes = np.bincount(near.ravel(), minlength=count + 1)[1:]
    if not count or not sizes.any() or not brightest.any():
        return nothing
    cavity = ndimage.binary_fill_holes(labels == 1 + int(sizes.argmax()))
    around = ndimage.binary_dilation(cavity, iterations=1)
    muscle, blood = _levels(phases[:, region], threshold)
    filled: NDArray[np.float64] = np.clip((phases[:, around] - muscle) / (blood - muscle), 0, 1).sum(axis=1)
    return filled


def _levels(values: NDArray[np.float64], threshold: float) -> tuple[float, float]:
    """Return the median intensity of muscle and of blood; intensities between them are partial volume."""
    return float(np.median(values[values <= threshold])), float(np.median(values[values > threshold]))


def _otsu(values: NDArray[np.float64]) -> float:
    """Return Otsu's threshold, which minimises the variance within two classes."""
    counts, edges = np.histogram(
        values, 128, range=(float(values.min()), float(np.percentile(values, 99.5)) + 1e-9)
    )
    centres = (edges[:-1] + edges[1:]) / 2
    below = np.cumsum(counts)
    above = below[-1] - below
    total = np.cumsum(counts * centres)
    with np.errstate(invalid="ignore", divide="ignore"):
        between = below * above * (total / below - (total[-1] - total) / above) ** 2
    return float(centres[int(np.nan_to_num(between).argmax())])
