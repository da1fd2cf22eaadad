"""Where the heart of a study lies: display, order and blood of its stacks, phases that selectors use."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiolens.curation.ingest.classify import Proposal, heart_frame, propose
from cardiolens.curation.ingest.frame_records import Image, Point, Stack
from cardiolens.curation.ingest.pixels import Frame, stacked
from cardiolens.curation.ingest.reasons import Flag
from cardiolens.study.anatomy import heart
from cardiolens.study.blood_pool import BloodAreas, Cine, moving_pixel, slice_areas
from cardiolens.study.heart_frame import Display, HeartFrame, best_display
from cardiolens.study.times import first_pass
from cardiolens.study.volume_manifest import DisplayTransform


def display(stack: Stack, view: str, frame: HeartFrame) -> Display:
    """Return the transform that displays a stack as its view requires; voxels are stored (column, row)."""
    columns, rows = np.array(stack.first.row_direction), np.array(stack.first.column_direction)
    return best_display(columns, rows, heart().views[view], frame)


def base_first(stack: Stack, frame: HeartFrame) -> bool:
    """Return whether the first slice is nearer to the base than the last; True for a single slice."""
    if stack.n_slices == 1:
        return True
    return float((stack.corner(0) - stack.corner(stack.n_slices - 1)) @ frame.base) > 0


def affine(stack: Stack) -> Point:
    """Return the affine from voxel (column, row, slice) to scanner RAS+, mm."""
    image = stack.first
    if stack.n_slices > 1:
        step = (stack.corner(stack.n_slices - 1) - stack.corner(0)) / (stack.n_slices - 1)
    else:
        step = stack.normal * stack.step
    matrix = np.eye(4)
    matrix[:3, 0] = np.array(image.row_direction) * image.spacing[1]
    matrix[:3, 1] = np.array(image.column_direction) * image.spacing[0]
    matrix[:3, 2] = step
    matrix[:3, 3] = stack.corner(0)
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ matrix


_FEWEST_CINE_SLICES = 3


def locate_heart(stacks: Sequence[Stack], pixels: dict[Image, Frame]) -> tuple[HeartFrame, BloodAreas | None]:
    """Return the heart's frame, with the axis where planes cross or the cine moves, and its blood areas."""
    frame = heart_frame(stacks)
    candidates = [
        proposal.stack
        for proposal in propose(stacks, frame)
        if proposal.volume_id == "cine_sax" and proposal.stack.n_slices >= _FEWEST_CINE_SLICES
    ]
    if not candidates:
        return frame, None
    cine = max(candidates, key=lambda stack: (stack.n_slices, stack.n_phases, stack.later))
    cine = cine if base_first(cine, frame) else cine.reversed()
    values, _, _ = stacked(cine, pixels)
    seeds = [seed for seed in (frame.axis, _seed_by_motion(values, cine)) if seed is not None]
    for seed in seeds:
        areas = _blood_areas(values, cine, seed, frame)
        if areas.found():
            return (frame if frame.axis is not None else replace(frame, axis=seed)), areas
    return frame, None


def _seed_by_motion(cine: Cine, stack: Stack) -> Point | None:
    """Locate the largest motion of the middle slices, in patient coordinates; None without motion."""
    place = moving_pixel(cine)
    return None if place is None else stack.point(stack.n_slices // 2, place[1], place[0])


def _blood_areas(cine: Cine, stack: Stack, axis: Point, frame: HeartFrame) -> BloodAreas:
    """Measure the blood area by slice and phase around the heart's long axis."""
    areas = np.zeros(cine.shape[:2])
    row_mm, column_mm = stack.first.spacing
    for index in range(len(cine)):
        image, offset = stack.grid[index][0], axis_offset(stack, index, axis, frame)
        row = float(offset @ np.array(image.column_direction)) / image.spacing[0]
        column = float(offset @ np.array(image.row_direction)) / image.spacing[1]
        rows, columns = np.indices(cine.shape[2:])
        away = np.hypot((rows - row) * row_mm, (columns - column) * column_mm)
        areas[index] = slice_areas(cine[index].astype(np.float64), away) * row_mm * column_mm
    return BloodAreas(areas)


def axis_offset(stack: Stack, index: int, axis: Point, frame: HeartFrame) -> Point:
    """Vector from the first pixel of a slice to the point where the long axis meets the slice."""
    reach = float(stack.normal @ (stack.corner(index) - axis)) / float(stack.normal @ frame.base)
    offset: Point = axis + reach * frame.base - stack.corner(index)
    return offset


_CAVITY_MM = 12.0  # radius around the axis, within the left ventricle's blood, for the first pass


@dataclass(frozen=True, slots=True)
class Volume:
    """A proposal with all data of its volume."""

    proposal: Proposal
    values: Frame  # (slice, phase, row, column), base first for a short axis
    slope: float
    intercept: float
    transform: DisplayTransform
    ed_phase: int | None = None
    es_phase: int | None = None
    t_on: int | None = None
    t_peak: int | None = None
    masks: Frame | None = None  # (slice, phase, row, column)
    ordered: bool = True  # whether a short axis is known to run from base to apex

    @property
    def stack(self) -> Stack:
        return self.proposal.stack

    def flagged(self, flag: Flag) -> "Volume":
        """Return a copy whose proposal has a further flag."""
        return replace(self, proposal=self.proposal.flagged(flag))


def with_times(volume: Volume, frame: HeartFrame, areas: BloodAreas | None) -> Volume:
    """Return a volume with the phases of its sequence, or flagged where they cannot be found."""
    if volume.proposal.sequence == "cine":
        return _cycle_phases(volume, areas)
    return _first_pass_times(volume, frame) if volume.proposal.sequence == "perfusion" else volume


def _cycle_phases(volume: Volume, areas: BloodAreas | None) -> Volume:
    """Set the declared end-diastole and end-systole, else by the blood at the same share of the cycle."""
    lines = volume.stack.grid
    moments = {image.moment: phase for line in lines for phase, image in enumerate(line) if image.moment}
    if volume.ed_phase is not None and volume.es_phase is not None:
        return volume
    if {"ED", "ES"} <= moments.keys():
        return replace(volume, ed_phase=moments["ED"], es_phase=moments["ES"])
    if volume.stack.n_phases == 1:
        return volume
    measured_here = volume.stack.placed or volume.proposal.displayable
    if areas is None or not areas.found() or not measured_here:
        return volume.flagged(Flag.TIMES)
    measured, n_phases = areas.by_slice_and_phase.shape[1], volume.stack.n_phases
    ed, es = (phase * n_phases // measured for phase in (areas.end_diastole, areas.end_systole))
    ed, es = moments.get("ED", ed), moments.get("ES", es)
    if ed == es:
        return volume.flagged(Flag.TIMES)
    volume = volume.flagged(Flag.TIMES) if areas.tied else volume
    return replace(volume, ed_phase=ed, es_phase=es)


def _first_pass_times(volume: Volume, frame: HeartFrame) -> Volume:
    """Set the times of the first pass if the heart's position is known; else flag the volume.

    Without these times `prepare` looks at the middle of the frame.
    """
    if frame.axis is None or not volume.stack.placed:
        return volume.flagged(Flag.TIMES)
    curve = _curve(volume, frame.axis, frame)
    if curve is None:
        return volume.flagged(Flag.TIMES)
    curve_peak = first_pass(curve)
    if not curve_peak.bolus_found:
        return volume.flagged(Flag.TIMES)
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
