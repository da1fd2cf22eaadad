"""Import one study: turn frames into decided proposals with pixels, slice order, display and times."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.burnt_text import shows_text
from cardiolens.curation.ingest.decide import Identify, decided_by, stated_mm, with_ids
from cardiolens.curation.ingest.decisions import Choice, Choices
from cardiolens.curation.ingest.image import Image, LooseMask, RejectedError
from cardiolens.curation.ingest.layout_evidence import Settled, masked, settled
from cardiolens.curation.ingest.loose_masks import Masks, misfits, with_given_masks, with_mask_ids
from cardiolens.curation.ingest.orient import base_first, display
from cardiolens.curation.ingest.pixels import Frame, PixelReader, one_scale, stacked, stacked_masks
from cardiolens.curation.ingest.propose import TEXT_FLAG, Proposal, choose, propose
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.series_grouping import LeftOut, reversed_stack, stacks_of
from cardiolens.curation.ingest.stack import Point, Stack
from cardiolens.curation.ingest.stack_geometry import heart_frame
from cardiolens.study.blood_pool import BloodAreas, Cine, moving_pixel, slice_areas
from cardiolens.study.heart_frame import PROTOTYPE_RIGHT, Display, HeartFrame
from cardiolens.study.manifest import DisplayTransform
from cardiolens.study.sequences import SHORT_AXIS
from cardiolens.study.times import first_pass

_CONTRADICTED = 0.5  # factor on the confidence if the blood areas put the base at the other end
_CAVITY_MM = 12.0  # radius around the axis, within the left ventricle's blood, for the first pass
_FEWEST_CINE_SLICES = 3
_AGAIN_FLAG = "frames_repeat"
FIRST_PASS_FLAGS = ("first_pass_not_located", "no_bolus_found")  # only marking it on the page answers them


@dataclass(frozen=True, slots=True)
class Volume:
    """A proposal with all data of its volume."""

    proposal: Proposal
    values: NDArray[Any]  # (slice, phase, row, column), base first for a short axis
    slope: float
    intercept: float
    transform: DisplayTransform
    ed_phase: int | None = None
    es_phase: int | None = None
    t_on: int | None = None
    t_peak: int | None = None
    masks: NDArray[Any] | None = None  # (slice, phase, row, column)
    ordered: bool = True  # whether a short axis is known to run from base to apex

    @property
    def stack(self) -> Stack:
        return self.proposal.stack


@dataclass
class Imported:
    """Outcome of one study: volumes (taken, waiting or left out), all proposals, frames left out."""

    volumes: list[Volume] = field(default_factory=list)
    seen: list[Volume] = field(default_factory=list)  # volumes of left-out proposals, for a person
    proposals: list[Proposal] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=list)
    details: dict[tuple[str, int], str] = field(default_factory=dict)
    masks: Masks = field(default_factory=dict)


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
    imported = Imported(masks=with_mask_ids(masks, identify))
    pixels: dict[Image, Frame] = {}
    reader = PixelReader(unreadable)
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
    stacks, repeats = (
        [stack for stack in group if not _constant(stack, pixels, imported)] for group in (stacks, repeats)
    )
    frame, areas = _heart([stack for stack in stacks if stack.placed and stack.sure], pixels)
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
            imported.seen.append(_left_out_volume(proposal, pixels, frame))
    return imported


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


def _heart(stacks: Sequence[Stack], pixels: dict[Image, Frame]) -> tuple[HeartFrame, BloodAreas | None]:
    """Return the heart's frame, with the axis where planes cross or the cine moves, and its blood areas."""
    frame = heart_frame(stacks, None)
    candidates = [
        proposal.stack
        for proposal in propose(stacks, frame)
        if proposal.volume_id == "cine_sax" and proposal.stack.n_slices >= _FEWEST_CINE_SLICES
    ]
    if not candidates:
        return frame, None
    cine = max(candidates, key=lambda stack: (stack.n_slices, stack.n_phases, stack.later))
    cine = cine if base_first(cine, frame) else reversed_stack(cine)
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
        image, offset = stack.grid[index][0], _axis_offset(stack, index, axis, frame)
        row = float(offset @ np.array(image.column_direction)) / image.spacing[0]
        column = float(offset @ np.array(image.row_direction)) / image.spacing[1]
        rows, columns = np.indices(cine.shape[2:])
        away = np.hypot((rows - row) * row_mm, (columns - column) * column_mm)
        areas[index] = slice_areas(cine[index].astype(np.float64), away) * row_mm * column_mm
    return BloodAreas(areas)


def _axis_offset(stack: Stack, index: int, axis: Point, frame: HeartFrame) -> Point:
    """Vector from the first pixel of a slice to the point where the long axis meets the slice."""
    reach = float(stack.normal @ (stack.corner(index) - axis)) / float(stack.normal @ frame.base)
    offset: Point = axis + reach * frame.base - stack.corner(index)
    return offset


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
    return _TIMED.get(proposal.sequence, _untimed)(volume, frame, blood)


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


def _untimed(volume: Volume, frame: HeartFrame, areas: BloodAreas | None) -> Volume:
    return volume


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
        offset = _axis_offset(stack, index, axis, frame)
        rows, columns = np.indices((image.rows, image.columns))
        away = np.hypot(
            columns * image.spacing[1] - offset @ np.array(image.row_direction),
            rows * image.spacing[0] - offset @ np.array(image.column_direction),
        )
        if not (away < _CAVITY_MM).any():
            return None
        curves.append(volume.values[index][:, away < _CAVITY_MM].mean(axis=1) * volume.slope)
    return [float(value) for value in np.mean(curves, axis=0)]


_TIMED: dict[str, Callable[[Volume, HeartFrame, BloodAreas | None], Volume]] = {
    "cine": _cycle_phases,
    "perfusion": _first_pass_times,
}
