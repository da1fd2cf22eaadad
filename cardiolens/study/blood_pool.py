"""The blood pool of a ventricle in cine frames, and the phases of the cycle that it shows."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

from cardiolens.base.errors import InputError
from cardiolens.study.manifest import Study
from cardiolens.study.volume import Volume, read_volume
from cardiolens.study.volume_manifest import VolumeManifest

CAVITY_MM = (20.0, 110.0)  # largest width of the left ventricle in end-diastole, children included
LENGTH_MM = (25.0, 180.0)  # from the first to the last slice with a cavity, of stacks of four and more


def has_heart_size(cavity_mm: float | None, length_mm: float | None = None) -> bool:
    """Return whether measures may be a human heart's; unknown ones may."""
    measures = ((cavity_mm, CAVITY_MM), (length_mm, LENGTH_MM))
    return all(value is None or low <= value <= high for value, (low, high) in measures)


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

    def found(self) -> bool:
        """Return whether the blood of at least a quarter of the slices contracts, over 5 or more phases."""
        n_slices, n_phases = self.by_slice_and_phase.shape
        return bool(n_phases >= _FEWEST_PHASES and 4 * len(self._middle) >= n_slices)

    @property
    def end_diastole(self) -> int:
        """End-diastole: the first phase (triggered by the R wave), unless another has clearly more blood."""
        areas = self._middle.sum(axis=0)
        return 0 if areas[0] >= _SAME_AREA * areas.max() else int(areas.argmax())

    @property
    def end_systole(self) -> int:
        """End-systole: the phase with the smallest median share of each slice's largest area."""
        return int(self._share_left.argmin())

    @property
    def tied(self) -> tuple[int, ...]:
        """Other phases with an area that does not differ from that of end-systole."""
        shares = self._share_left
        near = np.flatnonzero(shares <= shares.min() + _SAME_SHARE)
        return tuple(int(phase) for phase in near if phase != self.end_systole)

    @property
    def _share_left(self) -> NDArray[np.float64]:
        """Remaining blood by phase: the median over middle slices, robust to one slice that moved."""
        middle = self._middle
        shares: NDArray[np.float64] = np.median(middle / middle.max(axis=1, keepdims=True), axis=0)
        return shares

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
    values = phases[:, region]
    threshold = _otsu(values)
    brightest = ndimage.median_filter(phases.mean(axis=0), 3) > threshold
    labels, count = ndimage.label((phases[0] > threshold) & region)
    near = np.where(away < _SEED_MM, labels, 0)
    sizes = np.bincount(near.ravel(), minlength=count + 1)[1:]
    if not count or not sizes.any() or not brightest.any():
        return nothing
    cavity = ndimage.binary_fill_holes(labels == 1 + int(sizes.argmax()))
    around = ndimage.binary_dilation(cavity, iterations=1)
    muscle, blood = np.median(values[values <= threshold]), np.median(values[values > threshold])
    # Intensities between those of muscle and blood are partial volume.
    filled: NDArray[np.float64] = np.clip((phases[:, around] - muscle) / (blood - muscle), 0, 1).sum(axis=1)
    return filled


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


SHORT_AXIS_CINE = "cine_sax"


def needs_cycle(manifest: VolumeManifest) -> bool:
    """Return whether a manifest leaves the end-systole of a cine open."""
    phases = manifest.declared_layout().n_phases
    return manifest.over_time == "cycle" and manifest.es_phase is None and phases > 1


def cycle_of(study: Study) -> BloodAreas | None:
    """Find the cycle of a heart from its short-axis cine; None if no manifest needs it or none is found.

    The areas are in pixels. The cine's file is read here and again for display, to keep only one volume in
    memory; display reports what is wrong with it.
    """
    cines = [manifest for manifest in study.manifest.volumes if manifest.volume_id == SHORT_AXIS_CINE]
    if study.anatomy.frame != "heart" or not cines or not any(map(needs_cycle, study.manifest.volumes)):
        return None
    with suppress(InputError):
        volume = read_volume(study.folder, cines[0])
        if np.isfinite(volume.in_file_order).all():  # windowing refuses it later
            with np.errstate(over="ignore", invalid="ignore"):  # of extreme values
                areas = _areas(volume)
            return areas if areas is not None and areas.found() else None
    return None


def _areas(volume: Volume) -> BloodAreas | None:
    place = moving_pixel(volume.grid)
    if place is None:
        return None
    spacing_mm = volume.manifest.spacing_mm
    rows, columns = np.indices(volume.grid.shape[2:])
    away = np.hypot((rows - place[0]) * spacing_mm[1], (columns - place[1]) * spacing_mm[0])
    bright = np.sign(volume.slope)
    slices = (slice_areas(bright * phases.astype(np.float64), away) for phases in volume.grid)
    return BloodAreas(np.stack(list(slices)))


def size_doubts(manifest: VolumeManifest, cycle: BloodAreas | None) -> Iterator[str]:
    """Yield the doubt about a short-axis cine with a left ventricle that has no heart's width."""
    if cycle is None or manifest.volume_id != SHORT_AXIS_CINE:
        return
    row_mm, column_mm, _ = manifest.spacing_mm
    width_mm = float(2 * np.sqrt(cycle.by_slice_and_phase.max() * row_mm * column_mm / np.pi))
    low, high = CAVITY_MM
    if not has_heart_size(width_mm):
        yield (
            f"{manifest.volume_id}: by spacing_mm its left ventricle is {width_mm:.0f} mm wide; expected "
            f"{low:.0f} to {high:.0f} mm of a human heart; check spacing_mm"
        )


def with_cycle(manifest: VolumeManifest, cycle: BloodAreas | None) -> tuple[VolumeManifest, str]:
    """Fill open end-systole and end-diastole of a manifest; return it and an explanation in words."""
    if not needs_cycle(manifest):
        return manifest, ""
    if cycle is None:
        return manifest, (
            f"{manifest.volume_id}: end-systole is at 0.37 of the cycle by default: no contracting blood "
            "was found in a short-axis cine; declare ed_phase and es_phase"
        )
    n_phases, measured = manifest.declared_layout().n_phases, cycle.by_slice_and_phase.shape[1]
    ed, es = (phase * n_phases // measured for phase in (cycle.end_diastole, cycle.end_systole))
    ed = ed if manifest.ed_phase is None else manifest.ed_phase
    phases = sorted({phase * n_phases // measured for phase in cycle.tied} - {es})
    tie = f"; phase {', '.join(map(str, phases))} has as little blood; look at it" if phases else ""
    return manifest.model_copy(update={"ed_phase": ed, "es_phase": es}), (
        f"{manifest.volume_id}: end-diastole is phase {ed} and end-systole {es} of {n_phases}, by the "
        f"blood of the short-axis cine{tie}"
    )
