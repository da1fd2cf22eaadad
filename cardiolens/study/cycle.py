"""Find end-diastole and end-systole, if a manifest leaves them open, from the short-axis cine's blood."""

from dataclasses import dataclass

import numpy as np

from cardiolens.study.blood_pool import BloodAreas, moving_pixel, slice_areas
from cardiolens.study.heart_size import CAVITY_MM, has_heart_size
from cardiolens.study.manifest import Study
from cardiolens.study.volume import Volume, read_volume
from cardiolens.study.volume_manifest import VolumeManifest

SHORT_AXIS_CINE = "cine_sax"
Change = dict[str, int]


@dataclass(frozen=True, slots=True)
class Cycle:
    """Phases of the largest and the smallest blood area, of `n_phases`."""

    end_diastole: int
    end_systole: int
    n_phases: int
    tied: tuple[int, ...] = ()  # other phases with as little blood as end-systole
    cavity_mm: float | None = None  # width of the blood at its widest


def needs_cycle(manifest: VolumeManifest) -> bool:
    """Return whether a manifest leaves the end-systole of a cine open."""
    layout = manifest.declared_layout()
    one_phase = layout is not None and layout.n_phases == 1
    return manifest.over_time == "cycle" and manifest.es_phase is None and not one_phase


def cycle_of(study: Study) -> Cycle | None:
    """Find the cycle of a heart from its short-axis cine; None if no manifest needs it or none is found.

    The cine's file is read here and again for display, to keep only one volume in memory.
    """
    if study.anatomy.frame != "heart" or not any(map(needs_cycle, study.manifest.volumes)):
        return None
    for manifest in study.manifest.volumes:
        if manifest.volume_id == SHORT_AXIS_CINE and (study.folder / manifest.path).exists():
            return _cycle(read_volume(study.folder, manifest))
    return None


def _cycle(volume: Volume) -> Cycle | None:
    with np.errstate(over="ignore", invalid="ignore"):  # extreme values, which windowing refuses later
        areas = _areas(volume)
    if areas is None or not areas.found():
        return None
    row_mm, column_mm, _ = volume.manifest.spacing_mm
    widest = float(2 * np.sqrt(areas.by_slice_and_phase.max() * row_mm * column_mm / np.pi))
    return Cycle(areas.end_diastole, areas.end_systole, volume.layout.n_phases, areas.tied, widest)


def size_doubts(manifest: VolumeManifest, cycle: Cycle | None) -> tuple[str, ...]:
    """Return the doubt about a short-axis cine whose left ventricle has no heart's width."""
    if cycle is None or manifest.volume_id != SHORT_AXIS_CINE or has_heart_size(cycle.cavity_mm):
        return ()
    low, high = CAVITY_MM
    return (
        f"{manifest.volume_id}: by spacing_mm its left ventricle is {cycle.cavity_mm:.0f} mm wide; expected "
        f"{low:.0f} to {high:.0f} mm of a human heart; check spacing_mm",
    )


def _areas(volume: Volume) -> BloodAreas | None:
    layout = volume.layout
    frames = volume.in_file_order[list(volume.file_frames)]
    cine = frames.reshape(layout.n_slices, layout.n_phases, *frames.shape[1:])
    place = moving_pixel(cine)
    if place is None:
        return None
    spacing_mm = volume.manifest.spacing_mm
    rows, columns = np.indices(cine.shape[2:])
    away = np.hypot((rows - place[0]) * spacing_mm[1], (columns - place[1]) * spacing_mm[0])
    bright = np.sign(volume.slope)
    return BloodAreas(np.stack([slice_areas(bright * phases.astype(np.float64), away) for phases in cine]))


def with_cycle(manifest: VolumeManifest, n_phases: int, cycle: Cycle | None) -> tuple[VolumeManifest, str]:
    """Fill open end-systole and end-diastole of a manifest; return it and an explanation in words."""
    if not needs_cycle(manifest) or n_phases == 1:
        return manifest, ""
    if cycle is None:
        return manifest, (
            f"{manifest.volume_id}: end-systole is at 0.37 of the cycle by default: no contracting blood "
            "was found in a short-axis cine; declare ed_phase and es_phase"
        )
    ed, es = (phase * n_phases // cycle.n_phases for phase in (cycle.end_diastole, cycle.end_systole))
    ed = ed if manifest.ed_phase is None else manifest.ed_phase
    phases = sorted({phase * n_phases // cycle.n_phases for phase in cycle.tied} - {es})
    tie = f"; phase {', '.join(map(str, phases))} has as little blood; look at it" if phases else ""
    return manifest.model_copy(update={"ed_phase": ed, "es_phase": es}), (
        f"{manifest.volume_id}: end-diastole is phase {ed} and end-systole {es} of {n_phases}, by the "
        f"blood of the short-axis cine{tie}"
    )
