"""Import one study: turn frames into decided proposals with pixels, slice order, display and times."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.burnt_text import shows_text
from cardiolens.curation.ingest.decide import Identify, decided_by, stated_mm, with_ids
from cardiolens.curation.ingest.decisions import Choice, Choices
from cardiolens.curation.ingest.heart_location import locate_heart
from cardiolens.curation.ingest.image import Image, LooseMask, RejectedError
from cardiolens.curation.ingest.imported_volume import Imported, Volume
from cardiolens.curation.ingest.layout_evidence import Settled, masked, settled
from cardiolens.curation.ingest.loose_masks import Masks, misfits, with_given_masks, with_mask_ids
from cardiolens.curation.ingest.orient import base_first, display
from cardiolens.curation.ingest.phase_times import FIRST_PASS_FLAGS, with_times
from cardiolens.curation.ingest.pixels import Frame, PixelReader, one_scale, stacked, stacked_masks
from cardiolens.curation.ingest.propose import TEXT_FLAG, Proposal, choose, propose
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.series_grouping import reversed_stack, stacks_of
from cardiolens.curation.ingest.series_piles import LeftOut
from cardiolens.curation.ingest.slice_locations import placed_by_location
from cardiolens.curation.ingest.stack import Stack
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.blood_pool import BloodAreas
from cardiolens.study.heart_frame import PROTOTYPE_RIGHT, Display, HeartFrame
from cardiolens.study.volume_manifest import DisplayTransform

_CONTRADICTED = 0.5  # factor on the confidence if the blood areas put the base at the other end
_AGAIN_FLAG = "frames_repeat"


def import_study(
    images: Sequence[Image],
    lge: str,
    threshold: float,
    identify: Identify,
    choices: Choices,
    *,
    masks: Sequence[LooseMask] = (),
    unreadable: Collection[Place] = (),
) -> Imported:
    """Import one study with a person's `choices` by stack; files in `unreadable` are not opened.

    `masks`: those that a person may give to a stack.

    Unusable frames and stacks are left out with a reason and never stop the import.
    """
    images = placed_by_location(images)
    imported = Imported(masks=with_mask_ids(masks, identify))
    pixels: dict[Image, Frame] = {}
    reader = PixelReader(unreadable)
    stacks, repeats = _read_stacks(images, reader, pixels, imported)
    frame, areas = locate_heart([stack for stack in stacks if stack.placed and stack.sure], pixels)
    proposals = _oriented(propose(stacks, frame), frame, areas)
    again = [each.left_out(each.reason or Reason.REPEAT) for each in propose(repeats, frame)]
    proposals = [
        _with_given_masks(each, choices.get(each.stack_id), imported.masks, pixels)
        for each in with_ids([*proposals, *again], pixels, identify)
    ]
    by_layout = _settled_by_layout(proposals, reader, pixels)
    proposals = [
        by_layout[key].proposal if (key := _first_file(each.stack)) in by_layout else each
        for each in proposals
    ]
    proposals = [_with_picture_flags(each, pixels) for each in proposals]
    decided = decided_by(proposals, choices, partial(misfits, masks=imported.masks))
    decided = choose(decided, lge, threshold)
    imported.proposals = decided
    for proposal in decided:
        if proposal.reason is not None:
            imported.left_out += [(image, proposal.reason) for image in proposal.stack.images()]
        if proposal.reason is Reason.SPACING_UNSETTLED:
            doubts = {image: image.reading.doubt for image in proposal.stack.images() if image.reading}
            imported.details |= {(image.place.name, image.frame): doubt for image, doubt in doubts.items()}
        if proposal.status != "left_out":
            choice = choices[proposal.stack_id] if proposal.confirmed else None
            by_pictures = by_layout.get(_first_file(proposal.stack))
            stated = (
                (proposal, by_pictures)
                if choice is None
                else _restated(proposal, choice, pixels, by_pictures)
            )
            volume = _volume(stated[0], pixels, frame, areas, stated[1])
            imported.volumes.append(_with_choice(volume, choice))
        else:
            imported.left_out_volumes.append(_left_out_volume(proposal, pixels, frame))
    return imported


def _read_stacks(
    images: Sequence[Image], reader: PixelReader, pixels: dict[Image, Frame], imported: Imported
) -> tuple[list[Stack], list[Stack]]:
    """Return the stacks of frames whose pixels can be read and differ, and those of repeats."""
    usable = list(images)
    while True:
        stacks, left_out = stacks_of(usable)
        repeats, left_out = _repeats(left_out)
        wanted = [image for stack in (*stacks, *repeats) for image in stack.images() if image not in pixels]
        bad = _read(wanted, reader, pixels, imported)
        if not bad:
            break
        usable = [image for image in usable if image not in bad]
    imported.left_out += left_out
    usable_stacks, usable_repeats = (
        [stack for stack in group if not _constant(stack, pixels, imported)] for group in (stacks, repeats)
    )
    return usable_stacks, usable_repeats


def _with_given_masks(
    proposal: Proposal, choice: Choice | None, masks: Masks, pixels: dict[Image, Frame]
) -> Proposal:
    """Return the proposal of a stack with the masks that a person gave it, if they fit."""
    stack = proposal.stack
    if choice is None or not choice.loose_masks or misfits(stack, choice, masks):
        return proposal
    masked_stack = with_given_masks(stack, choice, masks)
    pixels |= {new: pixels[old] for old, new in zip(stack.images(), masked_stack.images(), strict=True)}
    return replace(proposal, stack=masked_stack)


def _settled_by_layout(
    proposals: Sequence[Proposal], reader: PixelReader, pixels: Mapping[Image, Frame]
) -> dict[Image, Settled]:
    """Settle by pictures and masks what a layout leaves open; read the outlines of short axes in DICOM."""
    by_layout: dict[Image, Settled] = {}
    for each in proposals:
        if each.stack.first.declared is not None:
            by_layout[_first_file(each.stack)] = settled(each, reader, pixels)
        elif each.view == SHORT_AXIS and any(image.mask is not None for image in each.stack.images()):
            by_layout[_first_file(each.stack)] = masked(each, reader)
    return by_layout


def _first_file(stack: Stack) -> Image:
    """Return the image of a stack that stands for it, in whichever order its slices are."""
    return min(stack.images(), key=lambda image: (image.place, image.frame))


def _with_picture_flags(proposal: Proposal, pixels: dict[Image, Frame]) -> Proposal:
    """Flag the proposal if its frames show text, or if two phases of a slice are one picture."""
    if proposal.status == "left_out":
        return proposal
    slices = [np.array([pixels[image] for image in line]) for line in proposal.stack.grid]
    flags = [TEXT_FLAG] * shows_text(slices) + [_AGAIN_FLAG] * any(map(_holds_a_frame_twice, slices))
    return proposal.flagged(*flags)


def _holds_a_frame_twice(phases: NDArray[Any]) -> bool:
    """Return whether two phases of a slice have the same pixels, as no two measurements have."""
    return len({phase.tobytes() for phase in phases}) < len(phases)


def _repeats(left_out: LeftOut) -> tuple[list[Stack], LeftOut]:
    """Return stacks of repeated acquisitions, which a person may take, and the other left-out frames."""
    again = [image for image, reason in left_out if reason is Reason.REPEAT]
    others = [(image, reason) for image, reason in left_out if reason is not Reason.REPEAT]
    stacks, rest = stacks_of(again)
    return stacks, others + [(image, Reason.REPEAT) for image, _ in rest]


def _read(
    images: Sequence[Image], reader: PixelReader, pixels: dict[Image, Frame], imported: Imported
) -> set[Image]:
    bad: set[Image] = set()
    for image in sorted(images, key=lambda image: (image.place, image.frame)):
        try:
            pixels[image] = reader.frame(image)
        except RejectedError as error:
            bad.add(image)
            imported.left_out.append((image, error.reason))
            imported.details[image.place.name, image.frame] = error.detail
    return bad


def _constant(stack: Stack, pixels: dict[Image, Frame], imported: Imported) -> bool:
    lows_and_highs = {
        value for image in stack.images() for value in (pixels[image].min(), pixels[image].max())
    }
    if len(lows_and_highs) > 1:
        return False
    imported.left_out += [(image, Reason.CONSTANT) for image in stack.images()]
    return True


def _oriented(proposals: Sequence[Proposal], frame: HeartFrame, areas: BloodAreas | None) -> list[Proposal]:
    """Order slices from base to apex; flag and downweigh short axes that the blood areas contradict."""
    contradicted = areas is not None and areas.larger_end() > 0
    oriented = []
    for proposal in proposals:
        if proposal.status == "left_out":
            oriented.append(proposal)
            continue
        if not proposal.stack.placed:
            oriented.append(proposal)
            continue
        ordered = replace(proposal, stack=_in_order(proposal.stack, proposal.view, frame))
        if proposal.view == SHORT_AXIS and contradicted:
            ordered = ordered.flagged("base_and_apex_contradicted", factor=_CONTRADICTED)
        oriented.append(ordered)
    return oriented


def _in_order(stack: Stack, view: str, frame: HeartFrame) -> Stack:
    """Order a short axis from the base, and long-axis layers along the view's normal, as the phantom does."""
    if view == SHORT_AXIS:
        return stack if base_first(stack, frame) else reversed_stack(stack)
    across = frame.toward(PROTOTYPE_RIGHT[view] + 90)
    forward = float((stack.corner(stack.n_slices - 1) - stack.corner(0)) @ across) >= 0
    return stack if forward else reversed_stack(stack)


def _volume(
    proposal: Proposal,
    pixels: dict[Image, Frame],
    frame: HeartFrame,
    areas: BloodAreas | None,
    by_pictures: Settled | None,
) -> Volume:
    values, slope, intercept = stacked(proposal.stack, pixels)
    displayed = (
        display(proposal.stack, proposal.view, frame)
        if proposal.stack.placed
        else Display(DisplayTransform() if by_pictures is None else by_pictures.display, clear=True)
    )
    proposal = proposal if displayed.clear else proposal.flagged("display_unclear")
    proposal = proposal if one_scale(proposal.stack) else proposal.flagged("rescaled_frame_by_frame")
    volume = Volume(
        proposal,
        values,
        slope,
        intercept,
        displayed.transform,
        masks=stacked_masks(proposal.stack, by_pictures.masks)
        if by_pictures is not None and by_pictures.masks
        else None,
        ordered=proposal.stack.placed if by_pictures is None else by_pictures.ordered,
    )
    if by_pictures is not None and by_pictures.drawn is not None:
        volume = replace(volume, ed_phase=by_pictures.drawn.ed, es_phase=by_pictures.drawn.es)
    blood = areas if by_pictures is None or by_pictures.areas is None else by_pictures.areas
    return with_times(volume, frame, blood)


def _restated(
    proposal: Proposal, choice: Choice, pixels: dict[Image, Frame], by_pictures: Settled | None
) -> tuple[Proposal, Settled | None]:
    """Apply what a person states of a stack's voxel size, slice order and mask."""
    if by_pictures is not None and choice.mask is False and not choice.loose_masks:
        by_pictures = replace(by_pictures, masks={})
    if by_pictures is not None and choice.base_first is not None:
        by_pictures = replace(by_pictures, ordered=choice.base_first)
    lengths = stated_mm(proposal.stack, choice)
    if lengths is None:
        return proposal, by_pictures
    stack = proposal.stack.with_spacing(lengths)
    again = dict(zip(proposal.stack.images(), stack.images(), strict=True))
    pixels |= {new: pixels[old] for old, new in again.items()}
    if by_pictures is not None:
        by_pictures = replace(
            by_pictures, masks={again.get(image, image): mask for image, mask in by_pictures.masks.items()}
        )
    return replace(proposal, stack=stack), by_pictures


def _with_choice(volume: Volume, choice: Choice | None) -> Volume:
    """Apply the display and the phases of a person's choice."""
    if choice is None or choice.display is None:
        return volume
    if choice.base_first is not None:
        volume = replace(volume, ordered=choice.base_first)
    return replace(
        volume,
        transform=choice.display,
        ed_phase=volume.ed_phase if choice.ed_phase is None else choice.ed_phase,
        es_phase=volume.es_phase if choice.es_phase is None else choice.es_phase,
        **_passage(volume, choice),
    )


def _passage(volume: Volume, choice: Choice) -> dict[str, Any]:
    """Return the first pass as a person marked it, which answers the flags that asked for it."""
    if choice.t_peak is None:
        return {}
    flags = tuple(flag for flag in volume.proposal.flags if flag not in FIRST_PASS_FLAGS)
    return {"t_on": choice.t_on, "t_peak": choice.t_peak, "proposal": replace(volume.proposal, flags=flags)}


def _left_out_volume(proposal: Proposal, pixels: dict[Image, Frame], frame: HeartFrame) -> Volume:
    """Return the volume of a left-out proposal, displayed by its view if known, else as stored."""
    values, slope, intercept = stacked(proposal.stack, pixels)
    transform = DisplayTransform(transpose=True)
    if proposal.volume_id:
        transform = display(proposal.stack, proposal.view, frame).transform
    return Volume(proposal, values, slope, intercept, transform)
