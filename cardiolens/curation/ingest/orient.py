"""Where the heart of a study lies: display, order, size and phases of its stacks, by place and pictures."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.classify import AS_STORED, Proposal, propose
from cardiolens.curation.ingest.frame_records import Point, RejectedError, Stack, Witness
from cardiolens.curation.ingest.heart_axis import FEWEST_SLICES, heart_frame
from cardiolens.curation.ingest.pixels import (
    PixelReader,
    Pixels,
    key_of,
    masks_of,
    stacked,
    stacked_masks,
)
from cardiolens.curation.ingest.reasons import Flag
from cardiolens.curation.masks.labels import CAVITY, WALL, Tissue, Tissues, label_map
from cardiolens.curation.masks.mask_stack import Stack as MaskStack
from cardiolens.curation.masks.mask_stack import impossible_in
from cardiolens.study.anatomy import SHORT_AXIS, heart
from cardiolens.study.blood_pool import BloodAreas, Cine, has_heart_size, moving_pixel, slice_areas
from cardiolens.study.orientation import PROTOTYPE_RIGHT, Display, HeartFrame, best_display
from cardiolens.study.times import first_pass
from cardiolens.study.volume_manifest import DisplayTransform

Step = tuple[float, float]  # rows and columns
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


def with_times(proposal: Proposal, pixels: Pixels, frame: HeartFrame, areas: BloodAreas | None) -> Proposal:
    """Return a proposal with the phases of its sequence, or flagged where they cannot be found."""
    if proposal.sequence == "cine":
        return _cycle_phases(proposal, areas)
    return _first_pass_times(proposal, pixels, frame) if proposal.sequence == "perfusion" else proposal


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


def _first_pass_times(proposal: Proposal, pixels: Pixels, frame: HeartFrame) -> Proposal:
    """Set the times of the first pass by the mean intensity around the long axis; else flag the volume.

    Without these times `prepare` looks at the middle of the frame.
    """
    stack, curves = proposal.stack, []
    if frame.axis is None or not stack.placed:
        return proposal.flagged(Flag.TIMES)
    values, slope, _ = stacked(stack, pixels)
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


@dataclass(frozen=True, slots=True)
class MaskEvidence:
    """What the mask of a short axis shows."""

    larger_end: int  # 1: the base is at the last slice, -1: at the first, 0: undecided
    right_ventricle: Step | None  # from the left ventricle, as stored
    has_size: bool  # whether it is as large as a heart
    possible: bool  # whether its tissues lie as in a heart
    cavities: NDArray[np.int64]  # pixels by phase


def settled(proposal: Proposal, reader: PixelReader, pixels: Pixels) -> Proposal:
    """Order a short axis without a position by its mask, and flag what masks contradict in a volume.

    Only a layout says that a stack has masks.
    """
    if proposal.stack.first.declared is None:
        return proposal
    proposal, tissues = _with_masks(proposal, reader)
    is_short = proposal.view == SHORT_AXIS
    if tissues is not None and not _fits_image(proposal, tissues, pixels, is_short=is_short):
        proposal = proposal.flagged(Flag.MASK)
    if not is_short:
        return proposal
    stack = proposal.stack
    evidence = None if tissues is None else mask_evidence(tissues, (*stack.first.spacing, stack.step))
    if evidence is not None:
        proposal = _checked(proposal, evidence)
    if stack.placed:
        return proposal if evidence is None else _checked_position(proposal, evidence)
    return _ordered_by_mask(proposal, evidence)


def _with_masks(proposal: Proposal, reader: PixelReader) -> tuple[Proposal, Tissues | None]:
    """Return the proposal with its masks, and their tissues; flagged if they cannot be read."""
    try:
        masks = masks_of(proposal.stack, reader)
    except RejectedError:
        return proposal.flagged(Flag.UNMASKED), None
    if not any(mask.any() for mask in masks.values()):  # those of parts of a set that are not drawn
        return proposal, None
    proposal = replace(proposal, masks=masks)
    labels = next(image.mask.labels for image in proposal.stack.images() if image.mask is not None)
    try:
        tissues = label_map(labels).tissues(stacked_masks(proposal.stack, masks), proposal.sequence)
    except InputError:
        return proposal.flagged(Flag.MASK), None
    return proposal, tissues


def _fits_image(proposal: Proposal, tissues: Tissues, pixels: Pixels, *, is_short: bool) -> bool:
    """Return whether a mask of a long axis draws muscle, and one of a cine short axis the brighter blood."""
    blood, wall = (np.isin(tissues, [int(kind) for kind in kinds]) for kinds in (CAVITY, WALL))
    if not is_short:
        return bool(wall.any())
    if proposal.sequence != "cine" or not (blood.any() and wall.any()):
        return True
    values, _, _ = stacked(proposal.stack, pixels)
    return bool(np.median(values[blood]) > np.median(values[wall]))


def mask_evidence(tissues: Tissues, spacing: tuple[float, float, float]) -> MaskEvidence | None:
    """Return the evidence of tissues (slice, phase, row, column); None without a cavity.

    `spacing`: mm between rows, columns, slices.
    """
    cavity, wall = (np.isin(tissues, [int(kind) for kind in kinds]) for kinds in (CAVITY, WALL))
    by_phase = cavity.sum(axis=(0, 2, 3))
    if not by_phase.any():
        return None
    widest = int(by_phase.argmax())
    inside, right = cavity[:, widest], tissues[:, widest] == int(Tissue.RV_BLOOD)
    pixel_mm2 = spacing[0] * spacing[1]
    areas = inside.sum(axis=(1, 2)) * pixel_mm2
    labelled = np.flatnonzero(areas)
    length = (labelled[-1] - labelled[0]) * spacing[2] if len(labelled) >= _FEWEST_FOR_LENGTH else None
    walled = int(np.where(wall.any(axis=(0, 2, 3)), by_phase, -1).argmax())
    return MaskEvidence(
        _larger_end(areas + right.sum(axis=(1, 2)) * pixel_mm2),
        _right_of(inside, right),
        has_heart_size(float(2 * np.sqrt(areas.max() / np.pi)), length),
        impossible_in(MaskStack(tissues[:, walled], *spacing)) is None,
        by_phase,
    )


def _larger_end(areas: NDArray[np.float64]) -> int:
    inside = np.flatnonzero(areas)
    if len(inside) < _FEWEST_SLICES or areas[inside].std() == 0:
        return 0
    slope = float(np.corrcoef(inside, areas[inside])[0, 1])
    return int(np.sign(slope)) if abs(slope) > _SLOPE else 0


def _right_of(lv: NDArray[np.bool_], rv: NDArray[np.bool_]) -> Step | None:
    steps = [
        np.argwhere(chamber).mean(axis=0) - np.argwhere(cavity).mean(axis=0)
        for cavity, chamber in zip(lv, rv, strict=True)
        if min(np.count_nonzero(cavity), np.count_nonzero(chamber)) >= _FEWEST_PIXELS
    ]
    if not steps:
        return None
    row, column = np.mean(steps, axis=0)
    return float(row), float(column)


def _checked(proposal: Proposal, evidence: MaskEvidence) -> Proposal:
    """Flag what no heart has: its size, its ring of muscle, an end-systole larger than its end-diastole."""
    moments = {
        image.moment: int(evidence.cavities[phase])
        for line in proposal.stack.grid
        for phase, image in enumerate(line)
        if image.moment and key_of(image) in proposal.masks
    }
    is_swapped = proposal.stack.n_phases > 1 and 0 < moments.get("ED", 0) <= moments.get("ES", 0)
    flags = [Flag.MASK] * (not evidence.possible) + [Flag.SPACING] * (not evidence.has_size)
    return proposal.flagged(*flags, *[Flag.PHASES] * is_swapped)


def _checked_position(proposal: Proposal, evidence: MaskEvidence) -> Proposal:
    """Flag an order or a display by coordinates that the mask contradicts; the stack runs from the base."""
    step, first = evidence.right_ventricle, proposal.stack.first
    is_right = True
    if step is not None:
        down = step[0] * first.spacing[0] * np.array(first.column_direction)
        away = down + step[1] * first.spacing[1] * np.array(first.row_direction)
        is_right = bool(away @ _RIGHT_AND_FRONT > _RIGHTWARD * max(float(np.linalg.norm(away)), 1e-9))
    flags = [Flag.ORDER] * (evidence.larger_end > 0) + [Flag.DISPLAY] * (not is_right)
    return proposal.flagged(*flags)


def _ordered_by_mask(proposal: Proposal, evidence: MaskEvidence | None) -> Proposal:
    """Order a stack without a position by its mask, and check its display by it."""
    if evidence is not None and evidence.right_ventricle is not None:
        flags = tuple(flag for flag in proposal.flags if flag is not Flag.DISPLAY)
        is_left = is_shown_left(evidence.right_ventricle, proposal.display or AS_STORED)
        proposal = replace(proposal, flags=flags).flagged(*[Flag.DISPLAY] * (not is_left))
        text = "the mask's right ventricle lies left of the left ventricle as shown"
        proposal = proposal.witnessed("display", Witness("pixels", "as declared", _MASK_WITNESS, text))
    if evidence is None or not evidence.larger_end:
        return proposal.flagged(Flag.ORDER_BY_DEFAULT)
    is_reversed = evidence.larger_end > 0
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
