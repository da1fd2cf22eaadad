"""Import one study: turn frames into decided proposals with pixels, slice order, display and times."""

import hashlib
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.burnt_text import shows_text
from cardiolens.curation.ingest.classify import AS_STORED, Proposal, choose, propose
from cardiolens.curation.ingest.decisions import Choice, Choices, contradicted
from cardiolens.curation.ingest.frame_records import Image, RejectedError, Stack, Vector, Witness, vector
from cardiolens.curation.ingest.ids import Pseudonyms
from cardiolens.curation.ingest.orient import display, in_order, locate_heart, settled, with_times
from cardiolens.curation.ingest.pixels import one_scale, pixels_of
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.series_stacks import LeftOut, stacks_of
from cardiolens.study.anatomy import SHORT_AXIS
from cardiolens.study.blood_pool import BloodAreas
from cardiolens.study.orientation import Display, HeartFrame

_CONTRADICTED = 0.5  # factor on the confidence if the blood areas put the base at the other end


@dataclass(frozen=True, slots=True)
class Task:
    """One study to import, with all inputs of a worker process."""

    spec: IngestSpec
    study_id: str
    images: Sequence[Image]
    names: Pseudonyms
    choices: Choices  # a person's, by stack
    provenance: Mapping[str, Any]  # digests of files, options, choices and code

    def left_out(self, reason: Reason, detail: str) -> "Imported":
        """Return an outcome without any frame."""
        return Imported(left_out=[(image, reason, detail) for image in self.images])


@dataclass
class Imported:
    """Outcome of one study: a proposal of each stack, and the frames left out with reason and detail."""

    proposals: list[Proposal] = field(default_factory=list)
    left_out: LeftOut = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)  # why a person's decision is, by stack

    def unused(self) -> LeftOut:
        """Return every frame that is in no volume of the study, with reason and detail."""
        reasons = [(each, each.reason) for each in self.proposals if each.reason is not None]
        frames = [(image, why, each.detail) for each, why in reasons for image in each.stack.images()]
        return [*self.left_out, *frames]

    def readable(self, images: Iterable[Image]) -> list[Image]:
        """Return the frames with pixels that can be read; leave out the others."""
        readable = []
        for image in sorted(images, key=lambda image: (image.place, image.frame)):
            try:
                pixels_of(image)
            except RejectedError as error:
                self.left_out.append((image, error.reason, error.detail))
            else:
                readable.append(image)
        return readable


def import_study(task: Task) -> Imported:
    """Import one study; unusable frames and stacks are left out with a reason and never stop the import."""
    imported, choices = Imported(), task.choices
    stacks, repeats = _read_stacks(_without_copies(task.images, imported), imported)
    frame, areas = locate_heart([stack for stack in stacks if stack.placed])
    proposals = [_oriented(each, frame, areas) for each in propose(stacks, frame)]
    proposals += [each.left_out(each.reason or Reason.REPEAT) for each in propose(repeats, frame)]
    identified = _with_ids(proposals, task.names)
    checked = [_with_picture_flags(settled(each)) for each in identified]
    for proposal in choose(_decided(checked, choices, imported), task.spec.lge, task.spec.threshold):
        choice = choices[proposal.stack_id] if proposal.confirmed else None
        imported.proposals.append(_shown(proposal, choice, frame, areas))
    return imported


def _without_copies(images: Sequence[Image], imported: Imported) -> list[Image]:
    """Leave out images that repeat another of their UID; flag different images that share one.

    Two images are one if UID, position, time and pixels are the same, however these are stored.
    """
    counts = Counter(image.identity.instance for image in images)
    shared = {image for image in images if image.identity.instance and counts[image.identity.instance] > 1}
    by_uid: dict[str, dict[Hashable, Image]] = defaultdict(dict)
    for image in imported.readable(shared):
        digest = hashlib.sha256(pixels_of(image).astype("<f8").tobytes()).digest()
        if by_uid[image.identity.instance].setdefault((_taken_at(image), digest), image) is not image:
            imported.left_out.append((image, Reason.DUPLICATE, ""))
    originals = {image for group in by_uid.values() for image in group.values()}
    namesakes = {image for group in by_uid.values() if len(group) > 1 for image in group.values()}
    return [
        replace(image, flags=(*image.flags, Flag.REPEATS)) if image in namesakes else image
        for image in images
        if image in originals or image not in shared
    ]


def _taken_at(image: Image) -> Hashable:
    """Return where and when a frame was taken."""
    place = (*image.position, *image.row_direction, *image.column_direction)
    times = (image.trigger, image.temporal, image.clock)
    number = image.instance_number if times == (None, None, None) else None
    return (*(round(value, 2) for value in place), *times, number)


def _read_stacks(images: Sequence[Image], imported: Imported) -> tuple[list[Stack], list[Stack]]:
    """Return the stacks of frames with readable pixels that differ, and those of repeats."""
    stacks, left_out = stacks_of(images)
    repeats, again = stacks_of([image for image, reason, _ in left_out if reason is Reason.REPEAT])
    frames = {image for stack in (*stacks, *repeats) for image in stack.images()}
    if bad := frames.difference(imported.readable(frames)):
        return _read_stacks([image for image in images if image not in bad], imported)
    imported.left_out += [line for line in left_out if line[1] is not Reason.REPEAT]
    imported.left_out += [(image, Reason.REPEAT, "") for image, _, _ in again]
    usable_stacks = [each for each in stacks if not _constant(each, imported)]
    return usable_stacks, [each for each in repeats if not _constant(each, imported)]


def _constant(stack: Stack, imported: Imported) -> bool:
    frames = map(pixels_of, stack.images())
    if len({value for frame in frames for value in (frame.min(), frame.max())}) > 1:
        return False
    imported.left_out += [(image, Reason.BROKEN_FILE, "only one grey value") for image in stack.images()]
    return True


def _oriented(proposal: Proposal, frame: HeartFrame, areas: BloodAreas | None) -> Proposal:
    """Order slices from base to apex; flag and downweigh a short axis that the blood areas contradict."""
    if proposal.status == "left_out" or not proposal.stack.placed:
        return proposal
    ordered = replace(proposal, stack=in_order(proposal.stack, proposal.view, frame), ordered=True)
    is_contradicted = proposal.view == SHORT_AXIS and areas is not None and areas.larger_end() > 0
    return ordered.flagged(Flag.ORDER, factor=_CONTRADICTED) if is_contradicted else ordered


def _with_ids(proposals: Sequence[Proposal], names: Pseudonyms) -> list[Proposal]:
    """Set the stack id of each proposal; number stacks of frames that share their UIDs."""
    identified: dict[str, Proposal] = {}
    for proposal in sorted(proposals, key=lambda each: (each.stack.series, each.stack.later)):
        frames, copy = sorted(_frame_key(image) for image in proposal.stack.images()), 1
        while (stack_id := names.stack(proposal.stack.first.identity, [*frames, str(copy)])) in identified:
            copy += 1
        identified[stack_id] = replace(proposal, stack_id=stack_id)
    return list(identified.values())


def _frame_key(image: Image) -> str:
    """Return what every export of a frame shares: its series and UID, else its content."""
    if image.identity.instance:
        return f"{image.identity.series} {image.identity.instance}"
    return hashlib.sha256(np.asarray(pixels_of(image)).tobytes()).hexdigest()


def _with_picture_flags(proposal: Proposal) -> Proposal:
    """Flag the proposal if its frames show text, or if two phases of a slice are one picture."""
    if proposal.status == "left_out":
        return proposal
    slices = [np.array([pixels_of(image) for image in line]) for line in proposal.stack.grid]
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
        elif why := "two_stacks" if choice.volume_id in twice else _why_refused(proposal, choice):
            imported.refused[proposal.stack_id] = why
            decided.append(proposal.flagged(factor=0.0))
        else:
            decided.append(_confirmed(proposal, choice))
    return decided


def _why_refused(proposal: Proposal, choice: Choice) -> str | None:
    stack, is_size_open = proposal.stack, Flag.SPACING in proposal.flags
    declared = "" if stack.first.declared is None else stack.first.declared.sequence
    return choice.refused(stack.n_phases, declared, stack.first.places_mm, is_size_open=is_size_open)


def _confirmed(proposal: Proposal, choice: Choice) -> Proposal:
    """Apply a person's sequence, view, slice order, size of voxels and word on the mask."""
    sequence, view = str(choice.sequence), str(choice.view)
    stack, lengths = proposal.stack, choice.spacing
    lengths = stack.first.places_mm.get(lengths) if isinstance(lengths, str) else lengths
    is_as_found = choice.along_normal == stack.along_normal
    stack = stack if is_as_found else stack.reversed()
    found_ordered = proposal.ordered and is_as_found and view == proposal.view
    for subject, says in (("sequence", sequence), ("view", view)):
        proposal = proposal.witnessed(subject, Witness("person", says, 1.0, "confirmed"))
    return replace(
        proposal,
        sequence=sequence,
        view=view,
        confidence=1.0,
        status="taken",
        reason=None,
        stack=stack if lengths is None else _with_spacing(stack, lengths),
        labels="" if choice.mask is False else proposal.labels,
        ordered=found_ordered if choice.base_first is None else choice.base_first,
    )


def _with_spacing(stack: Stack, mm: Vector) -> Stack:
    """Return a stack with other lengths of columns, rows and slices; its first pixel stays in place."""
    across, down, apart = mm
    origin = stack.corner(0)
    step = stack.corner(-1) - origin if stack.n_slices > 1 else stack.normal
    unit = step / float(np.linalg.norm(step))
    lines = []
    for number, line in enumerate(stack.grid):
        at = vector(origin + unit * apart * number)
        lines.append(
            tuple(replace(each, spacing=(down, across), position=at, thickness=apart) for each in line)
        )
    return replace(stack, grid=tuple(lines))


def _shown(
    proposal: Proposal, choice: Choice | None, frame: HeartFrame, areas: BloodAreas | None
) -> Proposal:
    """Return a proposal with display and times, a person's before those found; one left out has no times."""
    stack = proposal.stack
    displayed = Display(proposal.display or AS_STORED, clear=True)
    if stack.placed and proposal.volume_id:
        displayed = display(stack, proposal.view, frame)
    proposal = replace(proposal, transform=displayed.transform)
    if proposal.status == "left_out":
        return proposal
    flags = [Flag.WITNESSES] * (not displayed.clear) + [Flag.VALUES] * (not one_scale(stack))
    proposal = with_times(proposal.flagged(*flags), frame, areas)
    if choice is None:
        return proposal
    if {"ed_phase", "t_peak"} & choice.marks.keys():  # marked phases answer their flag
        proposal = replace(proposal, flags=tuple(flag for flag in proposal.flags if flag is not Flag.TIMES))
    return replace(proposal, transform=choice.display or proposal.transform).timed(**choice.marks)
