"""Settle what a layout leaves to the pictures: slice order, display and size, by masks and by blood."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.classify import Proposal
from cardiolens.curation.ingest.frame_records import Image, RejectedError, Stack, Witness
from cardiolens.curation.ingest.outlines import drawn_phases
from cardiolens.curation.ingest.pixels import PixelReader, masks_of, stacked, stacked_masks
from cardiolens.curation.ingest.reasons import Flag
from cardiolens.curation.masks.labels import CAVITY, WALL, LabelMap, Tissue, Tissues, label_map
from cardiolens.curation.masks.mask_stack import Stack as MaskStack
from cardiolens.curation.masks.ring import impossible_in
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.blood_pool import BloodAreas, has_heart_size, moving_pixel, slice_areas
from cardiolens.study.volume_manifest import DisplayTransform

_MASK_WITNESS, _BLOOD_WITNESS = 0.97, 0.85
_RIGHT_AND_FRONT = np.array([-1.0, -1.0, 0.0]) / np.sqrt(2)  # DICOM's axes point left and back
_RIGHTWARD = 0.2  # cosine of the largest angle between that and the direction of a right ventricle
_ENDS = {1: "the last slice", -1: "the first slice", 0: "neither end"}


@dataclass(frozen=True, slots=True)
class MaskEvidence:
    """What the mask of a short axis tells."""

    larger_end: int  # 1: the base is at the last slice, -1: at the first, 0: undecided
    right_ventricle: tuple[float, float] | None  # rows and columns from the left ventricle, as stored
    cavity_mm: float | None  # diameter at the widest slice
    length_mm: float | None
    possible: bool  # whether its tissues lie as in a heart


@dataclass(frozen=True, slots=True)
class Settled:
    """A proposal of a layout with what its pictures tell."""

    proposal: Proposal
    display: DisplayTransform
    ordered: bool = False  # whether the stack is known to run from base to apex
    masks: Mapping[Image, NDArray[Any]] = field(default_factory=dict)
    areas: BloodAreas | None = None  # of a cine without a position in the patient
    drawn: tuple[int, int] | None = None  # end-diastole and end-systole, where only they are drawn


def settled(proposal: Proposal, reader: PixelReader, pixels: Mapping[Image, NDArray[Any]]) -> Settled:
    """Order a stack that a layout names from base to apex, and flag what masks or blood contradict."""
    declared = proposal.stack.first.declared
    display = (
        declared.display if declared is not None and declared.display else DisplayTransform(transpose=True)
    )
    if proposal.view != SHORT_AXIS:
        proposal, masks = _readable(proposal, reader)
        return Settled(_with_muscle(proposal, masks), display, False, masks)
    proposal, masks_by_image = _readable(proposal, reader)
    proposal, by_mask = _evidence(proposal, masks_by_image)
    areas = None if by_mask is not None or proposal.stack.placed else _blood(proposal, pixels)
    proposal = _sized(proposal, by_mask, areas)
    proposal = _with_moments(proposal, masks_by_image)
    is_known = Flag.MASK not in proposal.flags
    if (
        masks_by_image
        and proposal.sequence == "cine"
        and is_known
        and not _is_bright(proposal.stack, masks_by_image, pixels)
    ):
        proposal = proposal.flagged(Flag.MASK)
    if proposal.stack.placed:
        return _with_position(proposal, display, masks_by_image, by_mask)
    so_far = Settled(proposal, display, False, masks_by_image, areas)
    return _unplaced(so_far, by_mask, pixels)


def masked(proposal: Proposal, reader: PixelReader) -> Settled:
    """Read the outlines of a stack with a position; flag what they contradict, and tell the phases drawn."""
    proposal, masks = _readable(proposal, reader)
    proposal, by_mask = _evidence(proposal, masks)
    sized = _sized(proposal, by_mask, None)
    told = _with_position(sized, DisplayTransform(transpose=True), masks, by_mask)
    if not masks:
        return told
    phases = drawn_phases(stacked_masks(proposal.stack, masks))
    unclear = () if phases is not None else (Flag.TIMES,)
    return replace(told, drawn=phases, proposal=told.proposal.flagged(*unclear))


def _readable(proposal: Proposal, reader: PixelReader) -> tuple[Proposal, Mapping[Image, NDArray[Any]]]:
    try:
        return proposal, masks_of(proposal.stack, reader)
    except RejectedError:
        return proposal.flagged(Flag.UNMASKED), {}


def _evidence(
    proposal: Proposal, masks: Mapping[Image, NDArray[Any]]
) -> tuple[Proposal, MaskEvidence | None]:
    if not masks:
        return proposal, None
    stack = proposal.stack
    [labels] = {image.mask.labels for image in masks if image.mask is not None}
    spacing = (*stack.first.spacing, stack.step)
    try:
        by_mask = mask_evidence(stacked_masks(stack, masks), label_map(labels), proposal.sequence, spacing)
    except InputError:
        return proposal.flagged(Flag.MASK), None
    if by_mask is not None and not by_mask.possible:
        proposal = proposal.flagged(Flag.MASK)
    return proposal, by_mask


def _with_muscle(proposal: Proposal, masks: Mapping[Image, NDArray[Any]]) -> Proposal:
    """Flag the volume of a long axis whose mask has no muscle, or labels that nobody knows."""
    muscle = False
    for image, mask in masks.items():
        assert image.mask is not None
        try:
            tissues = label_map(image.mask.labels).tissues(mask, proposal.sequence)
        except InputError:
            return proposal.flagged(Flag.MASK)
        muscle |= bool(np.isin(tissues, [int(kind) for kind in WALL]).any())
    empty = not any(mask.any() for mask in masks.values())
    return proposal if muscle or empty else proposal.flagged(Flag.MASK)


def _is_bright(
    stack: Stack, masks: Mapping[Image, NDArray[Any]], pixels: Mapping[Image, NDArray[Any]]
) -> bool:
    """Return whether blood is brighter than muscle where a mask shows them, as in every cine."""
    inside: dict[bool, list[NDArray[Any]]] = {True: [], False: []}
    for image, mask in masks.items():
        assert image.mask is not None
        tissues = label_map(image.mask.labels).tissues(mask, "cine")
        for is_blood, kinds in ((True, CAVITY), (False, WALL)):
            inside[is_blood].append(pixels[image][np.isin(tissues, [int(kind) for kind in kinds])])
    blood, muscle = (np.concatenate(inside[is_blood]) for is_blood in (True, False))
    return not (blood.size and muscle.size) or bool(np.median(blood) > np.median(muscle))


def _sized(proposal: Proposal, by_mask: MaskEvidence | None, areas: BloodAreas | None) -> Proposal:
    if by_mask is not None and not has_heart_size(by_mask.cavity_mm, by_mask.length_mm):
        return proposal.flagged(Flag.SPACING)
    if areas is not None and areas.found():
        widest = float(2 * np.sqrt(areas.by_slice_and_phase.max() / np.pi))
        return proposal if has_heart_size(widest) else proposal.flagged(Flag.SPACING)
    return proposal


def _with_moments(proposal: Proposal, masks: Mapping[Image, NDArray[Any]]) -> Proposal:
    """Flag a cine whose declared end-systole has a larger cavity than its end-diastole."""
    if not masks or proposal.stack.n_phases == 1:
        return proposal
    areas: dict[str, int] = {}
    for image, mask in masks.items():
        if image.moment and image.mask is not None:
            cavity = _cavity(mask, image.mask.labels, proposal.sequence)
            areas[image.moment] = areas.get(image.moment, 0) + cavity
    if {"ED", "ES"} <= areas.keys() and 0 < areas["ED"] <= areas["ES"]:
        return proposal.flagged(Flag.PHASES)
    return proposal


def _cavity(mask: NDArray[Any], labels: str, sequence: str) -> int:
    values = [value for value, tissue in label_map(labels).tissue_of(sequence).items() if tissue in CAVITY]
    return int(np.isin(mask, values).sum())


def _with_position(
    proposal: Proposal,
    display: DisplayTransform,
    masks: Mapping[Image, NDArray[Any]],
    by_mask: MaskEvidence | None,
) -> Settled:
    """Check the order that coordinates give against the mask; the stack already runs from the base."""
    if by_mask is not None and by_mask.larger_end > 0:
        proposal = proposal.flagged(Flag.ORDER)
    step = None if by_mask is None else by_mask.right_ventricle
    if step is not None and not _is_right(proposal.stack, step):
        proposal = proposal.flagged(Flag.DISPLAY)
    return Settled(proposal, display, True, masks)


def _is_right(stack: Stack, step: tuple[float, float]) -> bool:
    """Return whether a step of rows and columns leads to the right and front, as to a right ventricle."""
    first = stack.first
    down = step[0] * first.spacing[0] * np.array(first.column_direction)
    along = step[1] * first.spacing[1] * np.array(first.row_direction)
    away = (down + along) / max(float(np.linalg.norm(down + along)), 1e-9)
    return bool(away @ _RIGHT_AND_FRONT > _RIGHTWARD)


def _unplaced(
    so_far: Settled,
    by_mask: MaskEvidence | None,
    pixels: Mapping[Image, NDArray[Any]],
) -> Settled:
    """Order a stack whose header tells no position, and check its display, by mask or blood."""
    proposal, display, masks, areas = so_far.proposal, so_far.display, so_far.masks, so_far.areas
    if by_mask is not None and by_mask.right_ventricle is not None:
        flags = [flag for flag in proposal.flags if flag is not Flag.DISPLAY]
        shown = is_shown_left(by_mask.right_ventricle, display)
        proposal = replace(proposal, flags=(*flags, *[Flag.DISPLAY] * (not shown)))
        evidence = "the mask's right ventricle lies left of the left ventricle as shown"
        proposal = _witnessed(proposal, "display", "as declared", _MASK_WITNESS, evidence)
    end, by = 0, ""
    if by_mask is not None and by_mask.larger_end:
        end, by = by_mask.larger_end, "mask"
    elif areas is not None and areas.found() and areas.larger_end():
        end, by = areas.larger_end(), "blood"
    if end:
        reliability = _MASK_WITNESS if by == "mask" else _BLOOD_WITNESS
        says = f"base at {_ENDS[end]}"
        proposal = _witnessed(proposal, "order", says, reliability, f"by the area of the ventricle's {by}")
        proposal = proposal.flagged(Flag.ORDER_BY_DEFAULT) if by == "blood" else proposal
    if not end:
        return Settled(proposal.flagged(Flag.ORDER_BY_DEFAULT), display, False, masks, areas)
    if end > 0:
        proposal = replace(proposal, stack=proposal.stack.reversed())
        areas = None if areas is None else BloodAreas(areas.by_slice_and_phase[::-1])
    moments = {image.moment for image in proposal.stack.images()}
    if areas is None and not {"ED", "ES"} <= moments:
        areas = _blood(proposal, pixels)
    return Settled(proposal, display, True, masks, areas)


def _witnessed(proposal: Proposal, subject: str, says: str, reliability: float, evidence: str) -> Proposal:
    witness = (subject, Witness("pixels", says, reliability, evidence))
    return replace(proposal, witnesses=(*proposal.witnesses, witness))


def _blood(proposal: Proposal, pixels: Mapping[Image, NDArray[Any]]) -> BloodAreas | None:
    """Measure the blood of a cine without a position, around the point of most motion."""
    stack = proposal.stack
    if stack.n_phases == 1 or proposal.sequence != "cine":
        return None
    values, _, _ = stacked(stack, pixels)
    seed = moving_pixel(values)
    if seed is None:
        return None
    row_mm, column_mm = stack.first.spacing
    rows, columns = np.indices(values.shape[2:])
    away = np.hypot((rows - seed[0]) * row_mm, (columns - seed[1]) * column_mm)
    areas = [slice_areas(line.astype(np.float64), away) * row_mm * column_mm for line in values]
    return BloodAreas(np.array(areas))


_FEWEST_SLICES = 3  # with a cavity, for its area to tell base from apex
_SLOPE = 0.5  # least correlation of area and slice number
_FEWEST_PIXELS = 20  # of a ventricle in a slice, for its centre to tell a side
_SIDEWAYS = 0.5  # cosine of the largest angle between the direction of the right ventricle and image left
_FEWEST_FOR_LENGTH = 4


def mask_evidence(
    masks: NDArray[np.int32], labels: LabelMap, sequence: str, spacing: tuple[float, float, float]
) -> MaskEvidence | None:
    """Return the evidence of masks (slice, phase, row, column); None without a cavity.

    `spacing`: mm between rows, columns, slices. InputError for values that the label map does not know.
    """
    labelled_phases = masks.any(axis=(0, 2, 3))
    if not labelled_phases.any():
        return None
    tissues: Tissues = labels.tissues(masks[:, labelled_phases], sequence)
    cavity = np.isin(tissues, [int(kind) for kind in CAVITY])
    by_phase = cavity.sum(axis=(0, 2, 3))
    if not by_phase.any():
        return None
    widest = int(by_phase.argmax())
    inside, right = cavity[:, widest], tissues[:, widest] == int(Tissue.RV_BLOOD)
    areas = inside.sum(axis=(1, 2)) * spacing[0] * spacing[1]
    labelled = np.flatnonzero(areas)
    length = (labelled[-1] - labelled[0]) * spacing[2] if len(labelled) >= _FEWEST_FOR_LENGTH else None
    return MaskEvidence(
        _larger_end(areas + right.sum(axis=(1, 2)) * spacing[0] * spacing[1]),
        _right_of(inside, right),
        float(2 * np.sqrt(areas.max() / np.pi)),
        None if length is None else float(length),
        _is_possible(tissues, by_phase, spacing),
    )


def _is_possible(tissues: Tissues, cavities: NDArray[np.int64], spacing: tuple[float, float, float]) -> bool:
    """Return whether the widest cavity among the phases whose muscle is drawn lies in a ring."""
    walled = np.isin(tissues, [int(kind) for kind in WALL]).any(axis=(0, 2, 3))
    phase = int(np.where(walled, cavities, -1).argmax())
    return impossible_in(MaskStack(tissues[:, phase], *spacing)) is None


def _larger_end(areas: NDArray[np.float64]) -> int:
    inside = np.flatnonzero(areas)
    if len(inside) < _FEWEST_SLICES or areas[inside].std() == 0:
        return 0
    slope = float(np.corrcoef(inside, areas[inside])[0, 1])
    return int(np.sign(slope)) if abs(slope) > _SLOPE else 0


def _right_of(lv: NDArray[np.bool_], rv: NDArray[np.bool_]) -> tuple[float, float] | None:
    steps = []
    for cavity, chamber in zip(lv, rv, strict=True):
        if min(np.count_nonzero(cavity), np.count_nonzero(chamber)) >= _FEWEST_PIXELS:
            centres = [np.argwhere(part).mean(axis=0) for part in (cavity, chamber)]
            steps.append(centres[1] - centres[0])
    if not steps:
        return None
    row, column = np.mean(steps, axis=0)
    return float(row), float(column)


def is_shown_left(step: tuple[float, float], transform: DisplayTransform) -> bool:
    """Return whether a display shows the right ventricle on the image's left; `step`: its (row, column).

    Stored frames of NIfTI are (column, row), so `transpose` shows rows as rows.
    """
    row, column = step if transform.transpose else (step[1], step[0])
    across = -column if transform.flip_cols else column
    return bool(-across / max(float(np.hypot(row, column)), 1e-9) > _SIDEWAYS)
