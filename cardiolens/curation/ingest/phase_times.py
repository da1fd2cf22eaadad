"""Find the phases of a volume that selectors use: end-diastole, end-systole, the times of a first pass."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cardiolens.curation.ingest.heart_location import axis_offset
from cardiolens.curation.ingest.imported_volume import Volume
from cardiolens.curation.ingest.stack import Point
from cardiolens.study.blood_pool import BloodAreas
from cardiolens.study.heart_frame import HeartFrame
from cardiolens.study.times import first_pass

FIRST_PASS_FLAGS = ("first_pass_not_located", "no_bolus_found")  # only marking it on the page answers them
_CAVITY_MM = 12.0  # radius around the axis, within the left ventricle's blood, for the first pass


def with_times(volume: Volume, frame: HeartFrame, areas: BloodAreas | None) -> Volume:
    """Return a volume with the phases of its sequence, or flagged where they cannot be found."""
    return _TIMED.get(volume.proposal.sequence, _untimed)(volume, frame, areas)


def _cycle_phases(volume: Volume, frame: HeartFrame, areas: BloodAreas | None) -> Volume:
    """Set end-diastole and end-systole from the short-axis cine's blood, at the same share of the cycle."""
    if volume.ed_phase is not None and volume.es_phase is not None:
        return volume
    if (declared := _declared(volume)) is not None:
        return declared
    if volume.stack.n_phases == 1:
        return volume
    measured_here = volume.stack.placed or volume.proposal.displayable
    if areas is None or not areas.found() or not measured_here:
        return replace(volume, proposal=volume.proposal.flagged("end_systole_by_default"))
    measured, n_phases = areas.by_slice_and_phase.shape[1], volume.stack.n_phases
    ed, es = (phase * n_phases // measured for phase in (areas.end_diastole, areas.end_systole))
    moments = _moments(volume)
    ed, es = moments.get("ED", ed), moments.get("ES", es)
    if ed == es:
        return replace(volume, proposal=volume.proposal.flagged("end_systole_by_default"))
    if areas.tied:
        volume = replace(volume, proposal=volume.proposal.flagged("end_systole_not_clear"))
    return replace(volume, ed_phase=ed, es_phase=es)


def _declared(volume: Volume) -> Volume | None:
    """Set the ED and ES phases that sidecars or names declare; None unless both are declared."""
    moments = _moments(volume)
    if not {"ED", "ES"} <= moments.keys():
        return None
    return replace(volume, ed_phase=moments["ED"], es_phase=moments["ES"])


def _moments(volume: Volume) -> dict[str, int]:
    """Return the phases of ED and ES that sidecars, names or a layout declare."""
    lines = volume.stack.grid
    return {image.moment: phase for line in lines for phase, image in enumerate(line) if image.moment}


def _first_pass_times(volume: Volume, frame: HeartFrame, areas: BloodAreas | None) -> Volume:
    """Set the times of the first pass if the heart's position is known; else flag the volume.

    Without these times `prepare` looks at the middle of the frame.
    """
    if frame.axis is None or not volume.stack.placed:
        return replace(volume, proposal=volume.proposal.flagged("first_pass_not_located"))
    curve = _curve(volume, frame.axis, frame)
    if curve is None:
        return replace(volume, proposal=volume.proposal.flagged("first_pass_not_located"))
    curve_peak = first_pass(curve)
    if not curve_peak.bolus_found:
        return replace(volume, proposal=volume.proposal.flagged("no_bolus_found"))
    return replace(volume, t_on=curve_peak.t_on, t_peak=curve_peak.t_peak)


def _curve(volume: Volume, axis: Point, frame: HeartFrame) -> list[float] | None:
    """Return the mean intensity around the long axis by phase; None if the axis misses the frames."""
    stack, curves = volume.stack, []
    for index in range(stack.n_slices):
        image = stack.grid[index][0]
        offset = axis_offset(stack, index, axis, frame)
        rows, columns = np.indices((image.rows, image.columns))
        away = np.hypot(
            columns * image.spacing[1] - offset @ np.array(image.row_direction),
            rows * image.spacing[0] - offset @ np.array(image.column_direction),
        )
        if not (away < _CAVITY_MM).any():
            return None
        curves.append(volume.values[index][:, away < _CAVITY_MM].mean(axis=1) * volume.slope)
    return [float(value) for value in np.mean(curves, axis=0)]


def _untimed(volume: Volume, frame: HeartFrame, areas: BloodAreas | None) -> Volume:
    return volume


_TIMED: dict[str, Callable[[Volume, HeartFrame, BloodAreas | None], Volume]] = {
    "cine": _cycle_phases,
    "perfusion": _first_pass_times,
}
