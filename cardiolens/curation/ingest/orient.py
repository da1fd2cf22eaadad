"""Where the heart of a study lies: display, order and blood of its stacks, phases that selectors use."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cardiolens.curation.ingest.classify import Proposal, propose
from cardiolens.curation.ingest.frame_records import Frame, Point, Stack
from cardiolens.curation.ingest.heart_axis import FEWEST_SLICES, heart_frame
from cardiolens.curation.ingest.pixels import Pixels, stacked
from cardiolens.curation.ingest.reasons import Flag
from cardiolens.study.anatomy import SHORT_AXIS, heart
from cardiolens.study.blood_pool import BloodAreas, Cine, moving_pixel, slice_areas
from cardiolens.study.heart_frame import PROTOTYPE_RIGHT, Display, HeartFrame, best_display
from cardiolens.study.times import first_pass
from cardiolens.study.volume_manifest import DisplayTransform

_CAVITY_MM = 12.0  # radius around the axis, within the left ventricle's blood, for the first pass


def display(stack: Stack, view: str, frame: HeartFrame) -> Display:
    """Return the transform that displays a stack as its view requires; voxels are stored (column, row)."""
    columns, rows = np.array(stack.first.row_direction), np.array(stack.first.column_direction)
    return best_display(columns, rows, heart().views[view], frame)


def in_order(stack: Stack, view: str, frame: HeartFrame) -> Stack:
    """Order a short axis from the base, and long-axis layers along the view's normal, as the phantom does."""
    forward = -frame.base if view == SHORT_AXIS else frame.toward(PROTOTYPE_RIGHT[view] + 90)
    along = float((stack.corner(-1) - stack.corner(0)) @ forward)
    return (
        stack if along > 0 or stack.n_slices == 1 or (along == 0 and view != SHORT_AXIS) else stack.reversed()
    )


def affine(stack: Stack) -> Point:
    """Return the affine from voxel (column, row, slice) to scanner RAS+, mm."""
    image = stack.first
    if stack.n_slices > 1:
        step = (stack.corner(-1) - stack.corner(0)) / (stack.n_slices - 1)
    else:
        step = stack.normal * stack.step
    matrix = np.eye(4)
    matrix[:3, 0] = np.array(image.row_direction) * image.spacing[1]
    matrix[:3, 1] = np.array(image.column_direction) * image.spacing[0]
    matrix[:3, 2] = step
    matrix[:3, 3] = stack.corner(0)
    return np.diag([-1.0, -1.0, 1.0, 1.0]) @ matrix


def locate_heart(stacks: Sequence[Stack], pixels: Pixels) -> tuple[HeartFrame, BloodAreas | None]:
    """Return the heart's frame, with the axis where planes cross or the cine moves, and its blood areas."""
    frame = heart_frame(stacks)
    candidates = [
        proposal.stack
        for proposal in propose(stacks, frame)
        if proposal.volume_id == "cine_sax" and proposal.stack.n_slices >= FEWEST_SLICES
    ]
    if not candidates:
        return frame, None
    cine = max(candidates, key=lambda stack: (stack.n_slices, stack.n_phases, stack.later))
    cine = in_order(cine, SHORT_AXIS, frame)
    values, _, _ = stacked(cine, pixels)
    moving = moving_pixel(values)
    seeds = [frame.axis] if frame.axis is not None else []
    seeds += [cine.point(cine.n_slices // 2, moving[1], moving[0])] if moving is not None else []
    for seed in seeds:
        areas = blood_areas(values, cine, lambda index, seed=seed: on_axis(cine, index, seed, frame))
        if areas.found():
            return (frame if frame.axis is not None else replace(frame, axis=seed)), areas
    return frame, None


def blood_areas(cine: Cine, stack: Stack, centre: Callable[[int], Point]) -> BloodAreas:
    """Measure the blood by slice and phase around the point in each slice that `centre` returns, mm²."""
    row_mm, column_mm = stack.first.spacing
    areas = [
        slice_areas(line.astype(np.float64), stack.away_mm(index, centre(index)))
        for index, line in enumerate(cine)
    ]
    return BloodAreas(np.array(areas) * row_mm * column_mm)


def on_axis(stack: Stack, index: int, axis: Point, frame: HeartFrame) -> Point:
    """Return the point where the long axis meets a slice."""
    reach = float(stack.normal @ (stack.corner(index) - axis)) / float(stack.normal @ frame.base)
    point: Point = axis + reach * frame.base
    return point


@dataclass(frozen=True, slots=True)
class Volume:
    """A proposal with its voxels, its display and its phases of interest."""

    proposal: Proposal
    values: Frame  # (slice, phase, row, column), base first for a short axis
    slope: float
    intercept: float
    transform: DisplayTransform
    times: Mapping[str, int] = field(default_factory=dict)  # ed_phase, es_phase; t_on, t_peak

    @property
    def stack(self) -> Stack:
        return self.proposal.stack

    def timed(self, *flags: Flag, **times: int) -> "Volume":
        """Return a copy with these times, whose proposal has further flags."""
        return replace(self, times={**self.times, **times}, proposal=self.proposal.flagged(*flags))


def with_times(volume: Volume, frame: HeartFrame, areas: BloodAreas | None) -> Volume:
    """Return a volume with the phases of its sequence, or flagged where they cannot be found."""
    if volume.proposal.sequence == "cine":
        return _cycle_phases(volume, areas)
    return _first_pass_times(volume, frame) if volume.proposal.sequence == "perfusion" else volume


def _cycle_phases(volume: Volume, areas: BloodAreas | None) -> Volume:
    """Set the declared end-diastole and end-systole, else by the blood at the same share of the cycle."""
    proposal, n_phases = volume.proposal, volume.stack.n_phases
    lines = volume.stack.grid
    moments = {image.moment: phase for line in lines for phase, image in enumerate(line) if image.moment}
    if proposal.drawn is not None:
        return volume.timed(ed_phase=proposal.drawn[0], es_phase=proposal.drawn[1])
    if {"ED", "ES"} <= moments.keys():
        return volume.timed(ed_phase=moments["ED"], es_phase=moments["ES"])
    if n_phases == 1:
        return volume
    is_measured = volume.stack.placed or proposal.display is not None
    if areas is None or not areas.found() or not is_measured:
        return volume.timed(Flag.TIMES)
    measured = areas.by_slice_and_phase.shape[1]
    ed = moments.get("ED", areas.end_diastole * n_phases // measured)
    es = moments.get("ES", areas.end_systole * n_phases // measured)
    if ed == es:
        return volume.timed(Flag.TIMES)
    return volume.timed(*[Flag.TIMES] * bool(areas.tied), ed_phase=ed, es_phase=es)


def _first_pass_times(volume: Volume, frame: HeartFrame) -> Volume:
    """Set the times of the first pass by the mean intensity around the long axis; else flag the volume.

    Without these times `prepare` looks at the middle of the frame.
    """
    stack, curves = volume.stack, []
    for index in range(stack.n_slices):
        if frame.axis is None or not stack.placed:
            return volume.timed(Flag.TIMES)
        inside = stack.away_mm(index, on_axis(stack, index, frame.axis, frame)) < _CAVITY_MM
        if not inside.any():
            return volume.timed(Flag.TIMES)
        curves.append(volume.values[index][:, inside].mean(axis=1) * volume.slope)
    found = first_pass([float(value) for value in np.mean(curves, axis=0)])
    if not found.bolus_found:
        return volume.timed(Flag.TIMES)
    return volume.timed(t_on=found.t_on, t_peak=found.t_peak)
