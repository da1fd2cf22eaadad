"""Where the heart of a study lies: display, order, size and phases of its stacks, by place and pictures."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.classify import (
    AS_STORED,
    FEWEST_SLICES,
    LONG_AXIS_DEG,
    SHORT_AXIS_DEG,
    Proposal,
    propose,
)
from cardiolens.curation.ingest.frame_records import Point, RejectedError, Stack, Witness
from cardiolens.curation.ingest.pixels import stacked, stacked_masks
from cardiolens.curation.ingest.reasons import Flag
from cardiolens.curation.masks.labels import CAVITY, WALL, Tissue, Tissues, label_map
from cardiolens.curation.masks.mask_stack import Stack as MaskStack
from cardiolens.curation.masks.mask_stack import impossible_in
from cardiolens.study.anatomy import SHORT_AXIS, heart
from cardiolens.study.blood_pool import BloodAreas, Cine, has_heart_size, moving_pixel, slice_areas
from cardiolens.study.orientation import (
    PROTOTYPE_RIGHT,
    TYPICAL_BASE,
    Display,
    HeartFrame,
    best_display,
    frame_along,
)
from cardiolens.study.times import first_pass
from cardiolens.study.volume_manifest import DisplayTransform

Step = tuple[float, float]  # rows and columns
_CONCURRENT_MM = 12.0  # largest distance of planes that meet
_MASK_WITNESS = 0.97
_RIGHT_AND_FRONT = np.array([-1.0, -1.0, 0.0]) / np.sqrt(2)  # DICOM's axes point left and back
_RIGHTWARD = 0.2  # cosine of the largest angle between that and the direction of a right ventricle
_SIDEWAYS = 0.5  # cosine of the largest angle between the direction of the right ventricle and image left
_FEWEST_SLICES = 3  # with a cavity, for its area to show base and apex
_SLOPE = 0.5  # least correlation of area and slice number
_FEWEST_PIXELS = 20  # of a ventricle in a slice, for its centre to show a side
_FEWEST_FOR_LENGTH = 4
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


def heart_frame(stacks: Sequence[Stack]) -> HeartFrame:
    """Return the heart's frame by the largest stack that lies as a short axis does, else a typical one."""
    several = [stack for stack in stacks if stack.n_slices >= FEWEST_SLICES]
    short = [stack for stack in several if stack.tilt(TYPICAL_BASE) < SHORT_AXIS_DEG]
    if not short:
        return frame_along(None)
    frame = frame_along(max(short, key=lambda stack: (stack.n_slices, stack.n_phases)).normal)
    return replace(frame, axis=_crossing(stacks, frame))


def _crossing(stacks: Sequence[Stack], frame: HeartFrame) -> Point | None:
    """Return a point on the line where most long-axis planes meet; None if fewer than three meet."""
    planes = [stack for stack in stacks if 90 - stack.tilt(frame.base) < LONG_AXIS_DEG]
    crossings: list[tuple[int, float, Point]] = []
    for first, second in combinations(planes, 2):
        matrix = np.array([first.normal, second.normal, frame.base])
        if abs(np.linalg.det(matrix)) < 0.3:
            continue
        level = float(frame.base @ (first.middle + second.middle) / 2)
        through = [float(first.normal @ first.middle), float(second.normal @ second.middle), level]
        point = np.linalg.solve(matrix, through)
        distances = [plane.distance_mm(point) for plane in planes]
        near = [distance for distance in distances if distance < _CONCURRENT_MM]
        crossings.append((len(near), -sum(near), point))
    crossing = max(crossings, key=lambda each: each[:2], default=None)
    return crossing[2] if crossing is not None and crossing[0] >= 3 else None


def locate_heart(stacks: Sequence[Stack]) -> tuple[HeartFrame, BloodAreas | None]:
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
    values, _, _ = stacked(cine)
    moving = moving_pixel(values)
    seeds = [frame.axis] if frame.axis is not None else []
    seeds += [cine.point(cine.n_slices // 2, moving[1], moving[0])] if moving is not None else []
    for seed in seeds:
        areas = blood_areas(values, cine, [on_axis(cine, k, seed, frame) for k in range(cine.n_slices)])
        if areas.found():
            return (frame if frame.axis is not None else replace(frame, axis=seed)), areas
    return frame, None


def blood_areas(cine: Cine, stack: Stack, centres: Sequence[Point]) -> BloodAreas:
    """Measure the blood by slice and phase around a point in each slice, mm²."""
    row_mm, column_mm = stack.first.spacing
    areas = [
        slice_areas(line.astype(np.float64), stack.away_mm(index, centre))
        for index, (line, centre) in enumerate(zip(cine, centres, strict=True))
    ]
    return BloodAreas(np.array(areas) * row_mm * column_mm)


def on_axis(stack: Stack, index: int, axis: Point, frame: HeartFrame) -> Point:
    """Return the point where the long axis meets a slice."""
    reach = float(stack.normal @ (stack.corner(index) - axis)) / float(stack.normal @ frame.base)
    point: Point = axis + reach * frame.base
    return point


def with_times(proposal: Proposal, frame: HeartFrame, areas: BloodAreas | None) -> Proposal:
    """Return a proposal with the phases of its sequence, or flagged where they cannot be found."""
    if proposal.sequence == "cine":
        return _cycle_phases(proposal, areas)
    return _first_pass_times(proposal, frame) if proposal.sequence == "perfusion" else proposal


def _cycle_phases(proposal: Proposal, areas: BloodAreas | None) -> Proposal:
    """Set the declared end-diastole and end-systole, else by the blood at the same share of the cycle."""
    n_phases, lines = proposal.stack.n_phases, proposal.stack.grid
    moments = {image.moment: phase for line in lines for phase, image in enumerate(line) if image.moment}
    if {"ED", "ES"} <= moments.keys():
        return proposal.timed(ed_phase=moments["ED"], es_phase=moments["ES"])
    if n_phases == 1:
        return proposal
    if areas is None or not areas.found() or not proposal.stack.placed:
        return proposal.flagged(Flag.TIMES)
    measured = areas.by_slice_and_phase.shape[1]
    ed = moments.get("ED", areas.end_diastole * n_phases // measured)
    es = moments.get("ES", areas.end_systole * n_phases // measured)
    if ed == es:
        return proposal.flagged(Flag.TIMES)
    return proposal.timed(*[Flag.TIMES] * bool(areas.tied), ed_phase=ed, es_phase=es)


def _first_pass_times(proposal: Proposal, frame: HeartFrame) -> Proposal:
    """Set the times of the first pass by the mean intensity around the long axis; else flag the volume.

    Without these times `prepare` looks at the middle of the frame.
    """
    stack, curves = proposal.stack, []
    if frame.axis is None or not stack.placed:
        return proposal.flagged(Flag.TIMES)
    values, slope, _ = stacked(stack)
    for index in range(stack.n_slices):
        inside = stack.away_mm(index, on_axis(stack, index, frame.axis, frame)) < _CAVITY_MM
        if not inside.any():
            return proposal.flagged(Flag.TIMES)
        curves.append(values[index][:, inside].mean(axis=1) * slope)
    passage = first_pass([float(value) for value in np.mean(curves, axis=0)])
    if not passage.bolus_found:
        return proposal.flagged(Flag.TIMES)
    return proposal.timed(t_on=passage.t_on, t_peak=passage.t_peak)


# What a layout leaves to the pictures: order, display and size by masks


def settled(proposal: Proposal) -> Proposal:
    """Order a short axis without a position by its mask, and flag what masks contradict in a volume.

    Only a layout says that a stack has masks.
    """
    stack, is_short = proposal.stack, proposal.view == SHORT_AXIS
    if stack.first.declared is None:
        return proposal
    proposal, tissues = _with_masks(proposal)
    if tissues is not None and not _fits_image(proposal, tissues, is_short=is_short):
        proposal = proposal.flagged(Flag.MASK)
    if not is_short:
        return proposal
    widest = None
    if tissues is not None and (cavities := _is(tissues, CAVITY).sum(axis=(0, 2, 3))).any():
        widest = MaskStack(tissues[:, cavities.argmax()], *stack.first.spacing, stack.step)
        proposal = proposal.flagged(*_oddities(stack, tissues, cavities, widest))
    if not stack.placed:
        return _ordered_by_mask(proposal, widest)
    return proposal if widest is None else _checked_position(proposal, widest)


def _is(tissues: Tissues, kinds: Sequence[Tissue]) -> NDArray[np.bool_]:
    return np.isin(tissues, [int(kind) for kind in kinds])


def _with_masks(proposal: Proposal) -> tuple[Proposal, Tissues | None]:
    """Return the proposal with the label map of its masks, and their tissues; flagged if unreadable."""
    try:
        masks = stacked_masks(proposal.stack)
    except RejectedError:
        return proposal.flagged(Flag.UNMASKED), None
    if not masks.any():  # those of parts of a set that are not drawn
        return proposal, None
    labels = next(image.mask.labels for image in proposal.stack.images() if image.mask is not None)
    proposal = replace(proposal, labels=labels)
    try:
        return proposal, label_map(labels).tissues(masks, proposal.sequence)
    except InputError:
        return proposal.flagged(Flag.MASK), None


def _fits_image(proposal: Proposal, tissues: Tissues, *, is_short: bool) -> bool:
    """Return whether a mask of a long axis draws muscle, and one of a cine short axis the brighter blood."""
    blood, wall = _is(tissues, CAVITY), _is(tissues, WALL)
    if not is_short:
        return bool(wall.any())
    if proposal.sequence != "cine" or not (blood.any() and wall.any()):
        return True
    values, _, _ = stacked(proposal.stack)
    return bool(np.median(values[blood]) > np.median(values[wall]))


def _oddities(stack: Stack, tissues: Tissues, cavities: NDArray[np.int64], widest: MaskStack) -> list[Flag]:
    """Return flags for what no heart has: its size, its ring of muscle, an end-systole of more blood.

    `cavities`: pixels by phase; `widest`: the phase of the largest.
    """
    areas = widest.cavity.sum(axis=(1, 2)) * widest.row_mm * widest.column_mm
    labelled = np.flatnonzero(areas)
    length = (labelled[-1] - labelled[0]) * widest.step_mm if len(labelled) >= _FEWEST_FOR_LENGTH else None
    has_size = has_heart_size(float(2 * np.sqrt(areas.max() / np.pi)), length)
    walled = np.where(_is(tissues, WALL).any(axis=(0, 2, 3)), cavities, -1).argmax()
    is_possible = impossible_in(replace(widest, tissues=tissues[:, walled])) is None
    moments = {
        image.moment: int(cavities[phase])
        for line in stack.grid
        for phase, image in enumerate(line)
        if image.moment and image.mask is not None
    }
    is_swapped = stack.n_phases > 1 and 0 < moments.get("ED", 0) <= moments.get("ES", 0)
    flags = [Flag.MASK] * (not is_possible) + [Flag.SPACING] * (not has_size)
    return flags + [Flag.PHASES] * is_swapped


def _larger_end(widest: MaskStack) -> int:
    """Return 1 if the base is at the last slice by the area of the ventricles, -1 at the first, else 0."""
    areas = widest.of([*CAVITY, Tissue.RV_BLOOD]).sum(axis=(1, 2))
    inside = np.flatnonzero(areas)
    if len(inside) < _FEWEST_SLICES or areas[inside].std() == 0:
        return 0
    slope = float(np.corrcoef(inside, areas[inside])[0, 1])
    return int(np.sign(slope)) if abs(slope) > _SLOPE else 0


def _right_of(widest: MaskStack) -> Step | None:
    """Return the step from the left ventricle to the right one, as stored; None without a right one."""
    steps = [
        np.argwhere(chamber).mean(axis=0) - np.argwhere(cavity).mean(axis=0)
        for cavity, chamber in zip(widest.cavity, widest.of([Tissue.RV_BLOOD]), strict=True)
        if min(np.count_nonzero(cavity), np.count_nonzero(chamber)) >= _FEWEST_PIXELS
    ]
    if not steps:
        return None
    row, column = np.mean(steps, axis=0)
    return float(row), float(column)


def _checked_position(proposal: Proposal, widest: MaskStack) -> Proposal:
    """Flag an order or a display by coordinates that the mask contradicts; the stack runs from the base."""
    step, first = _right_of(widest), proposal.stack.first
    is_right = True
    if step is not None:
        down = step[0] * first.spacing[0] * np.array(first.column_direction)
        away = down + step[1] * first.spacing[1] * np.array(first.row_direction)
        is_right = bool(away @ _RIGHT_AND_FRONT > _RIGHTWARD * max(float(np.linalg.norm(away)), 1e-9))
    flags = [Flag.ORDER] * (_larger_end(widest) > 0) + [Flag.DISPLAY] * (not is_right)
    return proposal.flagged(*flags)


def _ordered_by_mask(proposal: Proposal, widest: MaskStack | None) -> Proposal:
    """Order a stack without a position by its mask, and check its display by it."""
    step, larger_end = (None, 0) if widest is None else (_right_of(widest), _larger_end(widest))
    if step is not None:
        flags = tuple(flag for flag in proposal.flags if flag is not Flag.DISPLAY)
        is_left = is_shown_left(step, proposal.display or AS_STORED)
        proposal = replace(proposal, flags=flags).flagged(*[Flag.DISPLAY] * (not is_left))
        text = "the mask's right ventricle lies left of the left ventricle as shown"
        proposal = proposal.witnessed("display", Witness("pixels", "as declared", _MASK_WITNESS, text))
    if not larger_end:
        return proposal.flagged(Flag.ORDER_BY_DEFAULT)
    is_reversed = larger_end > 0
    says = "base at the last slice" if is_reversed else "base at the first slice"
    witness = Witness("pixels", says, _MASK_WITNESS, "by the area of the ventricle's mask")
    stack = proposal.stack.reversed() if is_reversed else proposal.stack
    return replace(proposal.witnessed("order", witness), stack=stack, ordered=True)


def is_shown_left(step: Step, transform: DisplayTransform) -> bool:
    """Return whether a display shows the right ventricle on the image's left; `step`: its (row, column).

    Stored frames of NIfTI are (column, row), so `transpose` shows rows as rows.
    """
    row, column = step if transform.transpose else (step[1], step[0])
    across = -column if transform.flip_cols else column
    return bool(-across / max(float(np.hypot(row, column)), 1e-9) > _SIDEWAYS)
