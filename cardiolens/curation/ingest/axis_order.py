"""Axes of a NIfTI file: identify rows, columns, slices and time from the header and the pixels.

The standard puts time on the fourth axis. Real files put time elsewhere, or flatten slices and phases
into one axis. Pixels decide: frames adjacent in time differ less than adjacent slices, and a cycle ends
as it began.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.image import RejectedError
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.study.layout import infer_n_phases, small

Array = NDArray[Any]
_SIDE = 24  # pixels per side of compared frames: at finer scales noise outweighs motion
_CONTRADICTED = 1.25  # ratio of differences along the two axes from which the fourth axis is not time
_CYCLIC = 0.65  # last frame against first, in units of the largest difference; slices mostly reach 0.8
_CLOSED, _SURELY_CLOSED = 2.5, 1.35  # the same in units of the mean step; slices have 1.7 and more
_SMALLEST = 16  # pixels per side of a frame
_FEWEST_PHASES = 8
_LONGEST_STACK_MM = 250.0
_WIDE_MM = 180.0  # of a picture that shows more of the chest than the heart, most of which keeps still
_MOVED, _STILL = (
    0.08,
    0.03,
)  # change of its stillest quarter: slices have over 0.10, phases under 0.03
_SHOWN = 0.15  # of the brightest tissue: darker blocks are air, which never changes
_SAME_LENGTH, _OTHER_LENGTH = 1.02, 1.2
_CLEARLY_SMALLER = 0.8  # in-plane axes are longer than the axes of slices and phases


@dataclass(frozen=True, slots=True)
class Axes:
    """Axis numbers of a file: in plane, across slices, time; None if the file lacks the axis."""

    plane: tuple[int, int]
    across: int | None
    time: int | None
    phases_within: int = 1  # phases per slice if `across` holds slices and phases, slice by slice
    cyclic: bool = False
    sure: bool = True
    flags: tuple[str, ...] = ()
    evidence: str = ""

    @property
    def spatial(self) -> tuple[int, ...]:
        """Spatial axes, in the order of the affine's columns."""
        return tuple(sorted(axis for axis in (*self.plane, self.across) if axis is not None))


def frames_of(voxels: Array, axes: Axes) -> Array:
    """Reorder voxels to (slice, phase, row, column)."""
    across, time = axes.across, axes.time
    ordered = voxels[..., 0] if voxels.ndim == 4 and 3 not in (across, time, *axes.plane) else voxels
    if across is None:
        ordered, across = ordered[..., None], ordered.ndim
    if time is None:
        ordered, time = ordered[..., None], ordered.ndim
    ordered = ordered.transpose(across, time, axes.plane[1], axes.plane[0])
    if axes.phases_within == 1:
        return ordered
    return ordered.reshape(-1, axes.phases_within, *ordered.shape[2:])


def conventional(voxels: Array) -> Axes:
    """Return the axes of the standard: columns, rows, slices, and phases on the fourth."""
    axes = Axes((0, 1), 2 if voxels.ndim > 2 else None, 3 if voxels.ndim > 3 else None)
    if voxels.ndim < 4 or voxels.shape[3] == 1:
        return replace(axes, time=None, evidence="the layout says that the third axis counts slices")
    cyclic = _measure(_along(voxels, axes)).cyclic
    return replace(axes, cyclic=cyclic, evidence="the layout says that the fourth axis is time")


def axes_of(
    voxels: Array,
    lengths: Sequence[float] | None,
    *,
    sliced: int | None,
    step: float,
    one_phase: bool = False,
) -> Axes:
    """Identify the axes of voxels with two to four dimensions.

    `lengths`: lengths of the affine's columns, mm. `sliced`: the slice axis by dim_info. `step`: distance
    between slices, mm. `one_phase`: whether the file's name declares a single phase, or a still sequence.
    """
    if voxels.ndim == 2:
        return Axes((0, 1), None, None, evidence="one picture")
    if voxels.ndim == 4 and _time_before_plane(voxels.shape, lengths):
        axes = Axes((1, 2), 3, 0, flags=("time_axis_by_pixels",))
        cyclic = _measure(_along(voxels, axes)).cyclic
        evidence = "lengths of voxels fit only if the first axis is time"
        return replace(axes, cyclic=cyclic, evidence=evidence)
    if voxels.ndim == 4 and voxels.shape[3] > 1:
        return _four(voxels, sliced)
    voxels = voxels[..., 0] if voxels.ndim == 4 else voxels
    return _three(voxels, lengths, sliced, step, one_phase=one_phase)


def cycles(frames: Sequence[Array]) -> bool:
    """Return whether frames of consecutive phases end as they began."""
    return _measure(np.array([_small(frame) for frame in frames])).cyclic


def _time_before_plane(shape: Sequence[int], lengths: Sequence[float] | None) -> bool:
    """Return whether time is the first axis of a single-slice file; `lengths` then skip the time axis."""
    if lengths is None or shape[3] > 1 or shape[0] >= _CLEARLY_SMALLER * min(shape[1:3]):
        return False
    first, second, thickness = lengths
    alike = max(first, second) / min(first, second) < _SAME_LENGTH
    return alike and thickness > _OTHER_LENGTH * first and min(shape[1:3]) >= _SMALLEST


def _four(voxels: Array, sliced: int | None) -> Axes:
    shape = voxels.shape
    single = [axis for axis in range(3) if shape[axis] == 1]
    if single:
        across = single[-1]
        plane = _pair(axis for axis in range(3) if axis != across)
        cyclic = _measure(_along(voxels, Axes(plane, across, 3))).cyclic
        return Axes(plane, across, 3, cyclic=cyclic, evidence="one slice; the fourth axis is time")
    by_length = sorted(range(4), key=lambda axis: (-shape[axis], axis))
    plane, rest = _pair(sorted(by_length[:2])), sorted(by_length[2:])
    if shape[by_length[2]] > _CLEARLY_SMALLER * shape[by_length[1]]:
        across = 2 if sliced is None else sliced
        plane = _pair(axis for axis in range(3) if axis != across)
        rest = [across, 3]
    conventional = 3 if 3 in rest else None
    measures = {
        time: _measure(_along(voxels, Axes(plane, plane_axis, time)))
        for time, plane_axis in (rest, rest[::-1])
    }
    steps = {axis: measures[axis].step for axis in rest}
    evidence = "neighbours along " + ", ".join(
        f"axis {axis + 1} ({shape[axis]}) differ by {100 * value:.1f} %" for axis, value in steps.items()
    )
    alike = min(rest, key=lambda axis: steps[axis])
    unlike = rest[0] if alike == rest[1] else rest[1]
    ratio = steps[unlike] / steps[alike] if steps[alike] else float("inf")
    if conventional == alike:
        return Axes(
            plane, unlike, alike, cyclic=measures[alike].cyclic, evidence=evidence + "; the fourth is time"
        )
    if ratio >= _CONTRADICTED:
        flags = ("time_axis_by_pixels",)
        evidence += f"; time is axis {alike + 1}, against the header"
        return Axes(plane, unlike, alike, cyclic=measures[alike].cyclic, flags=flags, evidence=evidence)
    time = alike if conventional is None else conventional
    plane_axis = rest[0] if time == rest[1] else rest[1]
    evidence += "; neither is clearly time"
    unclear = Axes(plane, plane_axis, time, cyclic=measures[time].cyclic, evidence=evidence)
    return replace(unclear, sure=False, flags=("time_axis_unclear",))


def _along(voxels: Array, axes: Axes) -> Array:
    """Return one array per phase: the reduced frames of all slices, concatenated."""
    frames = frames_of(voxels, axes)
    return np.array([np.concatenate([_small(line[k]) for line in frames]) for k in range(frames.shape[1])])


def _three(
    voxels: Array, lengths: Sequence[float] | None, sliced: int | None, step: float, *, one_phase: bool
) -> Axes:
    across, evidence = _across(voxels.shape, lengths, sliced)
    plane = _pair(axis for axis in range(3) if axis != across)
    stack = Axes(plane, across, None, evidence=evidence)
    count = voxels.shape[across]
    if count < _FEWEST_PHASES:
        return stack
    frames = np.array([_small(frame[0]) for frame in frames_of(voxels, stack)])
    measure = _measure(frames)
    if one_phase:
        return _without_time(stack, measure)
    reason = f"{evidence}; its last frame differs from its first by {100 * measure.closing:.0f} % of the most"
    extent = count * (step if lengths is None else lengths[across])
    if extent > _LONGEST_STACK_MM:
        reason = f"{reason}; {count} slices would reach {extent:.0f} mm"
        if (phases := _phases_within(voxels, stack)) is not None:
            return _flattened(stack, phases, reason)
    stillest = _stillest(frames, voxels.shape, plane, lengths)
    return _slices_or_phases(replace(stack, evidence=reason), measure, stillest, extent)


def _without_time(stack: Axes, measure: "_Measure") -> Axes:
    """Return the slices of a file whose name tells no time; unsure if its frames are surely a cycle."""
    evidence = f"{stack.evidence}; its name tells no time"
    if not measure.surely_cyclic:
        return replace(stack, evidence=evidence)
    return _unclear(replace(stack, evidence=f"{evidence}, but its frames end as they began"))


def _flattened(stack: Axes, phases: tuple[int, bool], reason: str) -> Axes:
    """Return the axes of slices and phases on one axis."""
    within, cyclic = phases
    flags = ("slices_and_phases_on_one_axis",)
    evidence = f"{reason}, and every {within} frames it begins anew"
    described = replace(stack, phases_within=within, cyclic=cyclic, flags=flags, evidence=evidence)
    # if slices don't end as cycles, a multiple of the period may look like the period: a person decides
    return described if cyclic else _unclear(described)


def _slices_or_phases(stack: Axes, measure: "_Measure", stillest: float | None, extent: float) -> Axes:
    """Decide whether frames on one axis are slices or phases, by how they end and by what keeps still."""
    if measure.cyclic and stillest is not None and stillest > _MOVED:
        return replace(stack, evidence=f"{stack.evidence}, but nothing keeps still between frames: slices")
    time = replace(stack, across=None, time=stack.across)
    if measure.surely_cyclic:
        flags = ("time_axis_by_pixels",)
        return replace(time, cyclic=True, flags=flags, evidence=f"{stack.evidence}: time")
    if measure.cyclic:
        return _unclear(stack)
    if extent > _LONGEST_STACK_MM:
        return _unclear(time)
    if stillest is not None and stillest < _STILL:
        return _unclear(replace(stack, evidence=f"{stack.evidence}; but most of the picture keeps still"))
    return replace(stack, evidence=f"{stack.evidence}: slices")


def _unclear(axes: Axes) -> Axes:
    return replace(axes, sure=False, flags=(*axes.flags, "time_axis_unclear"))


def _across(shape: Sequence[int], lengths: Sequence[float] | None, sliced: int | None) -> tuple[int, str]:
    """Return the slice axis of a three-dimensional file, and the evidence."""
    single = [axis for axis in range(3) if shape[axis] == 1]
    if single:
        return single[-1], f"axis {single[-1] + 1} has one element"
    if sliced is not None:
        return sliced, f"dim_info says that axis {sliced + 1} counts slices"
    shortest = min(range(3), key=lambda axis: (shape[axis], -axis))
    if lengths is not None:
        for axis in (2, 1, 0):
            first, second = (lengths[each] for each in range(3) if each != axis)
            alike = max(first, second) / min(first, second) < _SAME_LENGTH
            if alike and lengths[axis] / first > _OTHER_LENGTH:
                return axis, f"voxels are longest along axis {axis + 1}"
    return shortest, f"axis {shortest + 1} is the shortest"


def _phases_within(voxels: Array, stack: Axes) -> tuple[int, bool] | None:
    """Return phases per slice on an axis of slices and phases, and whether each slice is a cycle."""
    frames = [small(frame[0]) for frame in frames_of(voxels, stack)]
    for cyclic in (True, False):
        try:
            return infer_n_phases(frames, cyclic=cyclic), cyclic
        except InputError:
            continue
    return None


@dataclass(frozen=True, slots=True)
class _Measure:
    step: float  # mean difference of adjacent frames, in standard deviations
    closing: float  # difference of last and first frame, in units of the largest difference
    closed: float  # the same, in units of the mean difference of adjacent frames
    enough: bool  # frames to tell a cycle

    @property
    def cyclic(self) -> bool:
        return self.enough and self.closing < _CYCLIC and self.closed < _CLOSED

    @property
    def surely_cyclic(self) -> bool:
        return self.cyclic and self.closed < _SURELY_CLOSED


def _measure(frames: Array) -> _Measure:
    spread = float(frames.std()) or 1.0
    step = float(np.mean(np.abs(np.diff(frames, axis=0)))) if len(frames) > 1 else 0.0
    largest = max(float(np.abs(frames - frame).mean(axis=(1, 2)).max()) for frame in frames)
    last = float(np.abs(frames[-1] - frames[0]).mean())
    closing, closed = (last / unit if unit else float("inf") for unit in (largest, step))
    return _Measure(step / spread, closing, closed, len(frames) >= _FEWEST_PHASES)


def _stillest(
    frames: Array, shape: Sequence[int], plane: tuple[int, int], lengths: Sequence[float] | None
) -> float | None:
    """Return how much the stillest quarter of the tissue changes from frame to frame, / standard deviation.

    From phase to phase only the heart moves; from slice to slice everything does. In a picture of the heart
    alone there is no difference: None if the picture is not wide, or its width unknown.
    """
    if lengths is None or min(shape[axis] * lengths[axis] for axis in plane) < _WIDE_MM:
        return None
    brightness = frames.mean(axis=0)
    tissue = brightness > _SHOWN * np.percentile(brightness, 95)
    changes = np.abs(np.diff(frames, axis=0)).mean(axis=0)[tissue]
    return float(np.percentile(changes, 25) / (frames.std() or 1.0)) if changes.size else None


def _small(frame: Array) -> Array:
    """Average a frame over square blocks, so that noise does not count as motion."""
    block = -(-max(frame.shape) // _SIDE)
    rows, columns = max(frame.shape[0] // block, 1), max(frame.shape[1] // block, 1)
    cropped = frame[: rows * block, : columns * block].astype(np.float64)
    blocks = cropped.reshape(rows, cropped.shape[0] // rows, columns, cropped.shape[1] // columns)
    means: Array = blocks.mean(axis=(1, 3))
    return means


def _pair(axes: Any) -> tuple[int, int]:
    first, second = axes
    return first, second


def squeezed(voxels: Array) -> Array:
    """Drop trailing axes of length 1 beyond the fourth; RejectedError unless two to four axes remain."""
    while voxels.ndim > 4 and voxels.shape[-1] == 1:
        voxels = voxels[..., 0]
    if not 2 <= voxels.ndim <= 4:
        raise RejectedError(Reason.BAD_AXES, f"{voxels.ndim} axes")
    return voxels
