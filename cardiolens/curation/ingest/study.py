"""Import one study: turn frames into decided proposals with pixels, slice order, display and times."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardiolens.curation.ingest.burnt_text import shows_text
from cardiolens.curation.ingest.classify import Proposal, choose, propose
from cardiolens.curation.ingest.decisions import Choice, Choices, contradicted
from cardiolens.curation.ingest.frame_records import Image, RejectedError, Stack, Vector, Witness
from cardiolens.curation.ingest.orient import Volume, base_first, display, locate_heart, with_times
from cardiolens.curation.ingest.pixels import Frame, PixelReader, one_scale, stacked, stacked_masks
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.series_stacks import LeftOut, placed_by_location, stacks_of
from cardiolens.curation.ingest.settle import Settled, masked, settled
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.blood_pool import BloodAreas
from cardiolens.study.heart_frame import PROTOTYPE_RIGHT, Display, HeartFrame
from cardiolens.study.volume_manifest import DisplayTransform

_CONTRADICTED = 0.5  # factor on the confidence if the blood areas put the base at the other end

Identify = Callable[[Sequence[str]], str]  # parts of a stack's identity → its id
Pixels = dict[Image, Frame]


@dataclass
class Imported:
    """Outcome of one study: its volumes, all proposals, and the frames left out with reason and detail."""

    volumes: list[Volume] = field(default_factory=list)  # that are taken or wait
    left_out_volumes: list[Volume] = field(default_factory=list)  # for a person to look at
    proposals: list[Proposal] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # why a person's decision is, by stack


def import_study(
    images: Sequence[Image], lge: str, threshold: float, identify: Identify, choices: Choices
) -> Imported:
    """Import one study with a person's `choices` by stack.

    Unusable frames and stacks are left out with a reason and never stop the import.
    """
    images = placed_by_location(images)
    imported, pixels, reader = Imported(), Pixels(), PixelReader()
    stacks, repeats = _read_stacks(images, reader, pixels, imported)
    frame, areas = locate_heart([stack for stack in stacks if stack.placed], pixels)
    proposals = _oriented(propose(stacks, frame), frame, areas)
    again = [each.left_out(each.reason or Reason.REPEAT) for each in propose(repeats, frame)]
    proposals = _with_ids([*proposals, *again], pixels, identify)
    by_layout = _settled_by_layout(proposals, reader, pixels)
    proposals = [
        by_layout[key].proposal if (key := _first_file(each.stack)) in by_layout else each
        for each in proposals
    ]
    proposals = [_with_picture_flags(each, pixels) for each in proposals]
    imported.proposals = choose(_decided(proposals, choices, imported), lge, threshold)
    for proposal in imported.proposals:
        if proposal.reason is not None:
            is_open = proposal.reason is Reason.NO_SPACING
            imported.left_out += [
                (image, proposal.reason, image.doubt if is_open else proposal.detail)
                for image in proposal.stack.images()
            ]
        if proposal.status == "left_out":
            imported.left_out_volumes.append(_left_out_volume(proposal, pixels, frame))
            continue
        choice = choices[proposal.stack_id] if proposal.confirmed else None
        by_pictures = by_layout.get(_first_file(proposal.stack))
        stated = proposal, by_pictures
        if choice is not None:
            stated = _restated(proposal, choice, pixels, by_pictures)
        imported.volumes.append(_with_choice(_volume(stated[0], pixels, frame, areas, stated[1]), choice))
    return imported


def _read_stacks(
    images: Sequence[Image], reader: PixelReader, pixels: Pixels, imported: Imported
) -> tuple[list[Stack], list[Stack]]:
    """Return the stacks of frames whose pixels can be read and differ, and those of repeats."""
    usable = list(images)
    while True:
        stacks, left_out = stacks_of(usable)
        repeats, again = stacks_of([image for image, reason, _ in left_out if reason is Reason.REPEAT])
        left_out = [line for line in left_out if line[1] is not Reason.REPEAT]
        left_out += [(image, Reason.REPEAT, "") for image, _, _ in again]
        wanted = [image for stack in (*stacks, *repeats) for image in stack.images() if image not in pixels]
        bad = _read(wanted, reader, pixels, imported)
        if not bad:
            break
        usable = [image for image in usable if image not in bad]
    imported.left_out += left_out
    usable_stacks = [each for each in stacks if not _constant(each, pixels, imported)]
    return usable_stacks, [each for each in repeats if not _constant(each, pixels, imported)]


def _read(images: Sequence[Image], reader: PixelReader, pixels: Pixels, imported: Imported) -> set[Image]:
    bad: set[Image] = set()
    for image in sorted(images, key=lambda image: (image.place, image.frame)):
        try:
            pixels[image] = reader.frame(image)
        except RejectedError as error:
            bad.add(image)
            imported.left_out.append((image, error.reason, error.detail))
    return bad


def _constant(stack: Stack, pixels: Pixels, imported: Imported) -> bool:
    ends = {value for image in stack.images() for value in (pixels[image].min(), pixels[image].max())}
    if len(ends) > 1:
        return False
    imported.left_out += [(image, Reason.BROKEN_FILE, "only one grey value") for image in stack.images()]
    return True


def _oriented(proposals: Sequence[Proposal], frame: HeartFrame, areas: BloodAreas | None) -> list[Proposal]:
    """Order slices from base to apex; flag and downweigh short axes that the blood areas contradict."""
    contradicted = areas is not None and areas.larger_end() > 0
    oriented = []
    for proposal in proposals:
        if proposal.status == "left_out" or not proposal.stack.placed:
            oriented.append(proposal)
            continue
        ordered = replace(proposal, stack=_in_order(proposal.stack, proposal.view, frame))
        if proposal.view == SHORT_AXIS and contradicted:
            ordered = ordered.flagged(Flag.ORDER, factor=_CONTRADICTED)
        oriented.append(ordered)
    return oriented


def _in_order(stack: Stack, view: str, frame: HeartFrame) -> Stack:
    """Order a short axis from the base, and long-axis layers along the view's normal, as the phantom does."""
    if view == SHORT_AXIS:
        return stack if base_first(stack, frame) else stack.reversed()
    across = frame.toward(PROTOTYPE_RIGHT[view] + 90)
    forward = float((stack.corner(stack.n_slices - 1) - stack.corner(0)) @ across) >= 0
    return stack if forward else stack.reversed()


def _with_ids(proposals: Sequence[Proposal], pixels: Pixels, identify: Identify) -> list[Proposal]:
    """Set the stack id of each proposal; number stacks that share all parts of their identity."""
    identified, used_ids = [], set()
    for proposal in sorted(proposals, key=lambda each: (each.stack.series, each.stack.later)):
        parts, copy = _parts(proposal.stack, pixels), 1
        while (stack_id := identify([*parts, str(copy)])) in used_ids:
            copy += 1
        used_ids.add(stack_id)
        identified.append(replace(proposal, stack_id=stack_id))
    return identified


def _parts(stack: Stack, pixels: Pixels) -> list[str]:
    """Return what every export of a stack shares: series (else frame contents), plane, kind of image."""
    first = min(stack.images(), key=lambda image: (image.identity.series, image.instance_number))
    plane = [f"{value + 0.0:.2f}" for value in (*first.row_direction, *first.column_direction)]
    kind = [first.component, "/".join(first.image_type), str(first.echo), f"{first.rows}x{first.columns}"]
    series = {image.identity.series for image in stack.images()}
    if all(series):
        return [*sorted(series), *plane, *kind]
    frames = sorted(hashlib.sha256(np.asarray(pixels[each]).tobytes()).hexdigest() for each in stack.images())
    return ["content", *frames, *plane, *kind]


def _settled_by_layout(
    proposals: Sequence[Proposal], reader: PixelReader, pixels: Pixels
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


def _with_picture_flags(proposal: Proposal, pixels: Pixels) -> Proposal:
    """Flag the proposal if its frames show text, or if two phases of a slice are one picture."""
    if proposal.status == "left_out":
        return proposal
    slices = [np.array([pixels[image] for image in line]) for line in proposal.stack.grid]
    again = any(len({phase.tobytes() for phase in phases}) < len(phases) for phases in slices)
    return proposal.flagged(*[Flag.TEXT] * shows_text(slices), *[Flag.REPEATS] * again)


def _decided(proposals: Sequence[Proposal], choices: Choices, imported: Imported) -> list[Proposal]:
    """Apply each choice to the proposal of its stack; one that cannot be applied is noted with its reason."""
    twice = contradicted([choices[each.stack_id] for each in proposals if each.stack_id in choices])
    decided = []
    for proposal in proposals:
        choice = choices.get(proposal.stack_id)
        if choice is None:
            decided.append(proposal)
        elif choice.status == "excluded":
            decided.append(proposal.left_out(Reason.EXCLUDED))
        elif why := _why_refused(proposal, choice, twice):
            imported.refused[proposal.stack_id] = why
            decided.append(proposal.flagged(factor=0.0))
        else:
            decided.append(_confirmed(proposal, choice))
    return decided


def _why_refused(proposal: Proposal, choice: Choice, twice: set[str]) -> str | None:
    """Return why a choice does not fit a stack: `two_stacks`, `sequence`, `phase` or `spacing`; else None."""
    if choice.volume_id in twice:
        return "two_stacks"
    declared = proposal.stack.first.declared
    why = choice.refused(proposal.stack.n_phases, "" if declared is None else declared.sequence)
    is_open = choice.spacing is not None or Flag.SPACING in proposal.flags
    return why or ("spacing" if is_open and _stated_mm(proposal.stack, choice) is None else None)


def _confirmed(proposal: Proposal, choice: Choice) -> Proposal:
    sequence, view = str(choice.sequence), str(choice.view)
    witnesses = tuple(
        (subject, Witness("person", says, 1.0, "confirmed"))
        for subject, says in (("sequence", sequence), ("view", view))
    )
    forward = choice.along_normal == proposal.stack.along_normal
    return replace(
        proposal,
        sequence=sequence,
        view=view,
        confidence=1.0,
        witnesses=(*proposal.witnesses, *witnesses),
        status="taken",
        reason=None,
        stack=proposal.stack if forward else proposal.stack.reversed(),
    )


def _stated_mm(stack: Stack, choice: Choice) -> Vector | None:
    """Return the lengths of columns, rows and slices that a person states; None if nothing is stated."""
    return stack.first.places_mm.get(choice.spacing) if isinstance(choice.spacing, str) else choice.spacing


def _volume(
    proposal: Proposal,
    pixels: Pixels,
    frame: HeartFrame,
    areas: BloodAreas | None,
    by_pictures: Settled | None,
) -> Volume:
    stack = proposal.stack
    values, slope, intercept = stacked(stack, pixels)
    unplaced = Display(DisplayTransform() if by_pictures is None else by_pictures.display, clear=True)
    displayed = display(stack, proposal.view, frame) if stack.placed else unplaced
    flags = [Flag.WITNESSES] * (not displayed.clear) + [Flag.VALUES] * (not one_scale(stack))
    volume = Volume(
        proposal.flagged(*flags), values, slope, intercept, displayed.transform, ordered=stack.placed
    )
    if by_pictures is not None:
        ed, es = by_pictures.drawn or (None, None)
        masks = stacked_masks(stack, by_pictures.masks) if by_pictures.masks else None
        volume = replace(volume, masks=masks, ordered=by_pictures.ordered, ed_phase=ed, es_phase=es)
        areas = by_pictures.areas or areas
    return with_times(volume, frame, areas)


def _restated(
    proposal: Proposal, choice: Choice, pixels: Pixels, by_pictures: Settled | None
) -> tuple[Proposal, Settled | None]:
    """Apply what a person states of a stack's voxel size, slice order and mask."""
    if by_pictures is not None and choice.mask is False:
        by_pictures = replace(by_pictures, masks={})
    if by_pictures is not None and choice.base_first is not None:
        by_pictures = replace(by_pictures, ordered=choice.base_first)
    lengths = _stated_mm(proposal.stack, choice)
    if lengths is None:
        return proposal, by_pictures
    stack = proposal.stack.with_spacing(lengths)
    again = dict(zip(proposal.stack.images(), stack.images(), strict=True))
    pixels |= {new: pixels[old] for old, new in again.items()}
    if by_pictures is not None:
        masks: Mapping[Image, Any] = {
            again.get(image, image): mask for image, mask in by_pictures.masks.items()
        }
        by_pictures = replace(by_pictures, masks=masks)
    return replace(proposal, stack=stack), by_pictures


def _with_choice(volume: Volume, choice: Choice | None) -> Volume:
    """Apply the display and the phases of a person's choice; marked phases answer their flag."""
    if choice is None or choice.display is None:
        return volume
    marked = choice.ed_phase is not None or choice.t_peak is not None
    ordered = volume.ordered if choice.base_first is None else choice.base_first
    flags = tuple(flag for flag in volume.proposal.flags if flag is not Flag.TIMES or not marked)
    proposal = replace(volume.proposal, flags=flags)
    return replace(
        volume,
        transform=choice.display,
        ordered=ordered,
        proposal=proposal,
        ed_phase=volume.ed_phase if choice.ed_phase is None else choice.ed_phase,
        es_phase=volume.es_phase if choice.es_phase is None else choice.es_phase,
        t_on=volume.t_on if choice.t_on is None else choice.t_on,
        t_peak=volume.t_peak if choice.t_peak is None else choice.t_peak,
    )


def _left_out_volume(proposal: Proposal, pixels: Pixels, frame: HeartFrame) -> Volume:
    """Return the volume of a left-out proposal, displayed by its view if known, else as stored."""
    transform = DisplayTransform(transpose=True)
    if proposal.volume_id:
        transform = display(proposal.stack, proposal.view, frame).transform
    return Volume(proposal, *stacked(proposal.stack, pixels), transform)
