"""Group the frames of a study into stacks: by orientation, matrix and spacing, then by position and phase.

The position along the normal gives the slice. The rank of the trigger time within a slice gives the phase,
because RR intervals differ between breath-holds. Several series of one slice each form one stack; of a
repeated slice only the latest acquisition is kept. Gaps in what counts the frames show what a stack lacks.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from cardiolens.curation.ingest.frame_records import WHOLE_CYCLE, Image, Pulse, Stack, Witness, normal
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.sequence import component_of, kind_by_tags, sequence_of, sequence_witnesses
from cardiolens.curation.ingest.words import Words, words_of

SAME_PLACE_MM = 0.5
_SAME_DIRECTION = np.cos(np.radians(1.0))
_WEIGHED = ("localizer", "scout", "other_part")  # kinds by name that are one witness among others
_REPEATED = 0.25  # share of the phases of a slice that are there twice, from which they are no repeats
_MANY = 5  # images of one phase at one position that are no repeats
_WIDEST_GAP_MM, _WIDEST_GAP = 20.0, 2.2  # between slices of two series, or times the median: one is lost
_WIDE = 1.6  # gap / usual step between two phases or slices
_UNCOVERED = 0.8  # phases that a heartbeat would hold beyond those that are there
_LATE, _LATE_BEAT = 0.6, 0.9  # first phase of a slice behind that of the others / step; of a first pass
_IRREGULAR = 0.2  # share of wide gaps, or of absent numbers, from which they do not count the frames
_FRAMES = 100_000  # instance numbers of frames per file

LeftOut = list[tuple[Image, Reason, str]]
Line = Sequence[Image]  # the phases of a slice
Key = Callable[[Image], Any]
_Item = TypeVar("_Item")
_TRIGGER, _TEMPORAL, _CLOCK, _NUMBER = map(attrgetter, ("trigger", "temporal", "clock", "instance_number"))
_REPEAT_KEYS: dict[str, Key] = {  # frames of a slice with the same are one phase
    "cine": _TRIGGER,
    "perfusion": attrgetter("temporal", "clock", "trigger"),
    "lge": lambda image: "",
    "t2": lambda image: "",
}


@dataclass
class Pile:
    """Frames of one series in one orientation and component, sorted by position."""

    words: Words
    places: list[list[Image]]
    witnesses: list[Witness]
    sequence: str
    flags: list[Flag] = field(default_factory=list)

    @property
    def images(self) -> list[Image]:
        """All frames."""
        return [image for place in self.places for image in place]


_Slot = tuple[float, Pile, list[Image]]  # position along the normal, pile, frames


def stacks_of(images: Sequence[Image]) -> tuple[list[Stack], LeftOut]:
    """Group a study's frames into stacks; return the other frames with their reasons."""
    left_out: LeftOut = []
    by_series: dict[Hashable, list[Image]] = defaultdict(list)
    for image in images:
        by_series[_series_of(image)].append(image)
    stacks: list[Stack] = []
    piles = [pile for series in by_series.values() for pile in _piles(series, left_out)]
    for group in _grouped(_without_flow(piles, left_out), _may_join):
        stacks += _joined(group, left_out)
    flagged = [_with_losses(stack, by_series) for stack in stacks]
    return sorted(flagged, key=lambda stack: (stack.series, stack.later)), left_out


def _series_of(image: Image) -> Hashable:
    """Return the key of a series: of DICOM by number too, as some anonymisers leave a study one UID."""
    return image.identity.series, image.series_number if image.nifti is None else 0


def _grouped(items: Iterable[_Item], fits: Callable[[Sequence[_Item], _Item], bool]) -> list[list[_Item]]:
    """Put each item into the first group that it fits, else into one of its own."""
    groups: list[list[_Item]] = []
    for item in items:
        group = next((group for group in groups if fits(group, item)), None)
        groups.append([item]) if group is None else group.append(item)
    return groups


def _piles(series: Sequence[Image], left_out: LeftOut) -> Iterator[Pile]:
    """Yield the piles of a series: one for each orientation, matrix, spacing, component and echo."""
    words, declared = words_of(*series[0].texts), series[0].declared
    kind_by_name = words.kind.replace("_", " ") if words.kind and words.kind not in _WEIGHED else ""
    kind = kind_by_tags(series, words) or kind_by_name
    for bucket in _grouped(series, lambda group, image: _is_alike(group[0], image)):
        places = _places_of(bucket)
        if declared is not None:
            yield Pile(words, places, [], declared.sequence)
            continue
        per_place = Counter(map(len, places)).most_common(1)[0][0]
        witnesses = sequence_witnesses(bucket, per_place, words)
        pile = Pile(words, places, witnesses, sequence_of(witnesses))
        pile.places = [_once(place, pile, left_out) for place in places]
        if kind:
            left_out += [(image, Reason.OTHER_IMAGE, kind) for image in pile.images]
            continue
        counted = max(max(image.phases_declared or 0, image.temporals_declared or 0) for image in bucket)
        latest = len(pile.places[0])
        are_many = len(bucket) >= _MANY * latest or 1 < counted <= latest / 2
        if len(places) == 1 and pile.sequence != "other" and are_many:
            pile.flags.append(Flag.PLACES)  # they may be slices that lost their positions
        yield pile


def _is_alike(first: Image, second: Image) -> bool:
    """Return whether two frames have one matrix, spacing, orientation, component and echo."""
    is_one_echo = abs((first.pulse.echo or 0) - (second.pulse.echo or 0)) < 5
    return _same_grid(first, second) and first.component == second.component and is_one_echo


def _same_grid(first: Image, second: Image) -> bool:
    """Return whether two frames have the same matrix, spacing and orientation."""
    return (
        (first.rows, first.columns) == (second.rows, second.columns)
        and all(abs(mm - rival_mm) < 1e-3 for mm, rival_mm in zip(first.spacing, second.spacing, strict=True))
        and float(np.dot(first.row_direction, second.row_direction)) > _SAME_DIRECTION
        and float(np.dot(first.column_direction, second.column_direction)) > _SAME_DIRECTION
    )


def _same_pulse(first: Pulse, second: Pulse) -> bool:
    """Return whether two pulse sequences are one; breath-holds may change its times a little."""
    echoes = first.echo or 0, second.echo or 0
    return (
        (first.scanning, first.variant) == (second.scanning, second.variant)
        and abs((first.flip or 0) - (second.flip or 0)) <= 15
        and abs(echoes[0] - echoes[1]) <= 0.3 * max(echoes)
    )


def _places_of(bucket: Sequence[Image]) -> list[list[Image]]:
    """Group frames by position along the common normal, in ascending order."""
    along = normal(bucket[0])
    ordered = sorted(bucket, key=lambda image: _height(image, along))
    is_new = np.diff([_height(image, along) for image in ordered]) >= SAME_PLACE_MM
    edges = [0, *(np.flatnonzero(is_new) + 1).tolist(), len(ordered)]
    return [ordered[start:end] for start, end in pairwise(edges)]


def _height(image: Image, along: np.ndarray) -> float:
    return float(np.dot(image.position, along))


def _once(place: list[Image], pile: Pile, left_out: LeftOut) -> list[Image]:
    """Keep the last acquisition of a slice, or of a phase, that one series holds several times."""
    if pile.sequence not in _REPEAT_KEYS:
        return place
    groups: dict[Hashable, list[Image]] = defaultdict(list)
    for image in place:
        groups[_REPEAT_KEYS[pile.sequence](image)].append(image)
    again = len(place) - len(groups)
    if again and pile.sequence in ("cine", "perfusion"):
        if len(groups) < 2 or not {None, (None, None, None)}.isdisjoint(groups):
            return place
        if pile.sequence == "perfusion" or min(map(len, groups.values())) < 2:  # not the whole slice
            if again > _REPEATED * len(groups):
                return place
            pile.flags.append(Flag.REPEATS)
    latest = []
    for copies in groups.values():
        copies.sort(key=lambda image: (image.acquisition, image.clock or 0.0, image.instance_number))
        left_out += [(image, Reason.REPEAT, "") for image in copies[:-1]]
        latest.append(copies[-1])
    return latest


def _without_flow(piles: Sequence[Pile], left_out: LeftOut) -> list[Pile]:
    """Drop magnitude images of phase contrast: same grid, pulse sequence and position as a velocity image."""
    flows = [image for image, _, kind in left_out if kind == "phase contrast"]
    remaining = []
    for pile in piles:
        first = pile.images[0]
        near = [flow for flow in flows if np.allclose(first.position, flow.position, atol=SAME_PLACE_MM / 2)]
        if any(_same_grid(first, flow) and _same_pulse(first.pulse, flow.pulse) for flow in near):
            left_out += [(image, Reason.OTHER_IMAGE, "phase contrast") for image in pile.images]
        else:
            remaining.append(pile)
    return remaining


def _may_join(group: Sequence[Pile], pile: Pile) -> bool:
    """Return whether a pile may be slices of the stack of a group: same sequence, grid and pulse sequence."""
    first, second = group[0].images[0], pile.images[0]
    components = {component_of(first, group[0].words), component_of(second, pile.words)}
    return (
        first.placed
        and second.placed
        and first.declared is None
        and (group[0].sequence, group[0].words.state) == (pile.sequence, pile.words.state)
        and (pile.sequence != "lge" or len(components) == 1)
        and _same_grid(first, second)
        and _same_pulse(first.pulse, second.pulse)
        and not any(_interleaved(rival, pile) for rival in group)
    )


def _interleaved(pile: Pile, rival: Pile) -> bool:
    """Return whether the slices of two piles interleave at different positions: two stacks, not one."""
    along = normal(pile.images[0])
    first, second = ([_height(place[0], along) for place in each.places] for each in (pile, rival))
    if min(len(first), len(second)) < 3:
        return False
    inside = [here for here in second if first[0] - SAME_PLACE_MM <= here <= first[-1] + SAME_PLACE_MM]
    return any(all(abs(here - there) >= SAME_PLACE_MM for there in first) for here in inside)


def _joined(group: Sequence[Pile], left_out: LeftOut) -> Iterator[Stack]:
    """Yield one stack per number of phases; leave out a number with at most half the largest's slices.

    Of slices at one position the latest counts.
    """
    by_count: dict[int, list[tuple[Pile, list[Image]]]] = defaultdict(list)
    for pile in group:
        for place in pile.places:
            by_count[len(place)].append((pile, place))
    most = max(by_count, key=lambda count: (len(by_count[count]) * count, count))
    few = {count for count in by_count if count != most and 2 * len(by_count[count]) <= len(by_count[most])}
    for count, places in by_count.items():
        if count in few:
            left_out += [(image, Reason.INCOMPLETE, "") for _, place in places for image in place]
            continue
        along, slots = normal(places[0][1][0]), list[_Slot]()
        flags = [Flag.INCOMPLETE] * bool(few and count == most)
        for pile, place in sorted(places, key=lambda entry: _later(entry[1]), reverse=True):
            here = _height(place[0], along)
            if any(abs(here - there) < SAME_PLACE_MM for there, _, _ in slots):
                left_out += [(image, Reason.REPEAT, "") for image in place]
                flags.append(Flag.REPEATS)
            else:
                slots.append((here, pile, place))
        for part in _apart(sorted(slots, key=lambda slot: slot[0]), flags):
            yield from _ordered_stack(part, flags, left_out)


def _apart(slots: Sequence[_Slot], flags: list[Flag]) -> list[list[_Slot]]:
    """Split sorted slices where a wide gap lies between two series; flag gaps of whole slices."""
    gaps = np.diff([here for here, _, _ in slots])
    widest = _WIDEST_GAP_MM if len(gaps) < 2 else max(_WIDEST_GAP * float(np.median(gaps)), SAME_PLACE_MM)
    parts = [[slots[0]]]
    for slot, gap in zip(slots[1:], gaps, strict=True):
        if gap > widest and slot[1] is not parts[-1][-1][1]:  # beyond such a gap lies a separate plane
            parts.append([])
        parts[-1].append(slot)
    shares = gaps / np.median(gaps) if len(parts) > 1 else np.array([0.5])
    if bool(np.all(np.abs(shares - np.round(shares)) <= 0.1)):  # slices between are lost
        flags.append(Flag.INCOMPLETE)
    return parts


def _later(place: Line) -> tuple[int, float, int]:
    return max((image.series_number, image.clock or 0.0, image.instance_number) for image in place)


def _ordered_stack(slots: Sequence[_Slot], flags: Sequence[Flag], left_out: LeftOut) -> Iterator[Stack]:
    """Yield the stack of sorted slices with sorted phases; nothing if no key sorts the phases."""
    piles = list({id(pile): pile for _, pile, _ in slots}.values())
    places = [place for _, _, place in slots]
    grid, by = _ordered(places, piles[0].sequence)
    if not grid:
        unordered = [image for place in places for image in place]
        left_out += [(image, Reason.INCOMPLETE, "nothing orders its phases") for image in unordered]
        return
    every = [*flags, *(flag for pile in piles for flag in pile.flags)]
    every += [Flag.ORDER_BY_DEFAULT] if by == "instance_number" else []
    gaps = np.diff([here for here, _, _ in slots])
    thickness = places[0][0].thickness
    if len(gaps) > 1 and np.max(np.abs(gaps - np.median(gaps))) > max(0.1 * float(np.median(gaps)), 0.3):
        every.append(Flag.INCOMPLETE)  # a slice is missing or foreign
    if thickness is not None and len(gaps) and len(grid[0]) > 1 and float(np.min(gaps)) < 0.5 * thickness:
        every.append(Flag.PLACES)  # some phases of these slices may lie elsewhere
    witnesses = max((pile.witnesses for pile in piles), key=len)
    yield Stack(grid, tuple(pile.words for pile in piles), tuple(witnesses), tuple(every))


def _ordered(places: Sequence[Line], sequence: str) -> tuple[tuple[tuple[Image, ...], ...], str]:
    """Sort each slice's frames by the first key that distinguishes them all; return the key's name too.

    Nothing if no key does.
    """
    if all(len(place) == 1 for place in places):
        return tuple(tuple(place) for place in places), ""
    times = ("temporal", "clock", "trigger") if sequence == "perfusion" else ("trigger", "temporal", "clock")
    for name in (*times, "instance_number"):
        key = attrgetter(name)
        values = [[key(image) for image in place] for place in places]
        if all(None not in line and len(set(line)) == len(line) for line in values):
            return tuple(tuple(sorted(place, key=key)) for place in places), name
    return (), ""


# Losses


def _with_losses(stack: Stack, by_series: Mapping[Hashable, Sequence[Image]]) -> Stack:
    """Return the stack flagged with what its frames and their headers say, and with what it lacks."""
    declared = stack.first.declared
    sequence = sequence_of(stack.witnesses) if declared is None else declared.sequence
    series = [by_series[key] for key in {_series_of(image) for image in stack.images()}]
    flags = [*stack.flags, *(flag for image in stack.images() for flag in image.flags)]
    counted = [image.phases_declared or 0 for image in stack.images() if sequence == "cine"]
    counted += [image.temporals_declared or 0 for image in stack.images()]
    apart, thickness = abs(stack.first.apart or 0.0), stack.first.thickness or 0.0
    gaps = _gaps(stack.grid, sequence)
    if any(in_slice != gaps[0] for in_slice in gaps):
        flags.append(Flag.PHASES)  # each slice lacks others: the volume would mix phases
    elif (
        gaps[0]
        or (stack.n_phases > 1 and max(counted) > stack.n_phases)
        or (sequence == "cine" and _ends_before_the_beat(stack))
        or (stack.n_slices > 1 and apart >= max(0.9 * thickness, 1.0) and stack.step > _WIDE * apart)
        or any(map(_is_short, series))
    ):
        flags.append(Flag.INCOMPLETE)
    return replace(stack, flags=tuple(dict.fromkeys(flags)))


def _ends_before_the_beat(stack: Stack) -> bool:
    """Return whether the phases of most slices end before the heartbeat that the headers declare."""
    triggers = _rising(stack.grid, _TRIGGER)
    if stack.n_phases < WHOLE_CYCLE or not len(triggers):
        return False
    beats = np.array([np.median([image.beat for image in line if image.beat] or [0]) for line in stack.grid])
    uncovered = beats / np.median(np.diff(triggers, axis=1), axis=1) - stack.n_phases
    return bool(np.median(np.where(beats > 0, uncovered, 0.0)) > _UNCOVERED)


def _gaps(lines: Sequence[Line], sequence: str) -> list[set[int]]:
    """Return the ranks before which each slice lacks phases, by times and positions, else by numbers.

    Phases of a cine are even in time, so times count them. Beats are not: their clock shows what is lost.
    """
    gaps: list[set[int]] = [set() for _ in lines]
    if min(map(len, lines)) < WHOLE_CYCLE:
        return gaps
    trigger, temporal, clock, number = (_rising(lines, key) for key in (_TRIGGER, _TEMPORAL, _CLOCK, _NUMBER))
    is_fine = bool(np.any(clock % 1))  # not of whole seconds
    times = clock if sequence != "cine" and is_fine else trigger
    latest = _LATE if sequence == "cine" else _LATE_BEAT
    for values in [each for each in (times, temporal) if len(each)] or [number]:
        steps = np.diff(values, axis=1)
        usual = np.median(steps, axis=1, keepdims=True) if len(values) else steps
        late = (values[:, :1] - values[:, :1].min(initial=np.inf)) / usual > latest
        for in_slice, is_wide, is_late in zip(gaps, steps / usual > _WIDE, late, strict=False):
            wide = np.flatnonzero(is_wide) + 1
            in_slice.update(wide.tolist() if wide.size <= max(1, _IRREGULAR * len(lines[0])) else [])
            in_slice.update({0} if values is not number and is_late[0] else set())
    return gaps


def _rising(lines: Sequence[Line], key: Key) -> NDArray[np.float64]:
    """Return values (slice, phase); none unless every phase has a larger one than that before."""
    values = np.array([[key(image) for image in line] for line in lines], np.float64)  # None becomes NaN
    return values if np.all(np.diff(values, axis=1) > 0) else values[:0]


def _is_short(series: Sequence[Image]) -> bool:
    """Return whether a series lacks some, not many, of the images that its numbers or its count announce."""
    numbers = {image.instance_number // _FRAMES for image in series}
    most = max(1.0, _IRREGULAR * len(series))
    declared = max(image.images_declared or 0 for image in series)
    if 0 < declared - len(series) <= max(1, len(series) // 2):  # else it counts something else
        return True
    if len(numbers) < WHOLE_CYCLE:
        return False
    first = min(numbers)
    absent = max(numbers) - (min(first, 1) if first <= most + 1 else first) + 1 - len(numbers)
    return 0 < absent <= most
