"""Group the frames of a study into stacks: by orientation, matrix and spacing, then by position and phase.

The position along the normal gives the slice. The rank of the trigger time within a slice gives the phase,
because RR intervals differ between breath-holds. Several series of one slice each form one stack; of a
repeated slice only the latest acquisition is kept. Gaps in what counts the frames show what a stack lacks.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cardiolens.curation.ingest.frame_records import Image, Stack, Witness, normal, vector
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.sequence import component_of, kind_by_tags, sequence_of, sequence_witnesses
from cardiolens.curation.ingest.words import Words, words_of

SAME_PLACE_MM = 0.5
_SAME_DIRECTION = np.cos(np.radians(1.0))
_OVERRULED = ("map", "ti_scout")  # kinds by name that a cine stack of five slices refutes
_WEIGHED = ("localizer", "scout", "other_part")  # kinds by name that are one witness among others
_REPEATED = 0.25  # share of the phases of a slice that are there twice, from which they are no repeats
_MANY = 5  # images of one phase at one position that are no repeats
_STOPPED = 2  # last beats, at most, that a stopped first pass lacks in some slices
_WIDEST_GAP_MM, _WIDEST_GAP = (
    20.0,
    2.2,
)  # between slices of two series, or times the median: one slice is lost
_WIDE = 1.6  # gap / usual step between two phases
_UNCOVERED = 0.8  # phases that a heartbeat would hold beyond those that are there
_LATE, _LATE_BEAT = 0.6, 0.9  # first phase of a slice behind that of the others / step; of a first pass
_IRREGULAR = 0.2  # share of wide gaps, or of absent numbers, from which they do not count the frames
_FEWEST = 8  # phases or images that tell a usual step
_FRAMES = 100_000  # instance numbers of frames per file

LeftOut = list[tuple[Image, Reason, str]]
Line = Sequence[Image]  # the phases of a slice
_Slot = tuple[float, "Pile", list[Image]]  # position along the normal, pile, frames
_KEYS: dict[str, Callable[[Image], float | None]] = {
    "trigger": lambda image: image.trigger,
    "temporal": lambda image: image.temporal,
    "clock": lambda image: image.clock,
    "number": lambda image: image.instance_number,
}
_REPEAT_KEYS: dict[str, Callable[[Image], Hashable]] = {  # frames of a slice with the same are one phase
    "cine": lambda image: image.trigger,
    "perfusion": lambda image: (image.temporal, image.clock, image.trigger),
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
        return [image for place in self.places for image in place]


def stacks_of(images: Sequence[Image]) -> tuple[list[Stack], LeftOut]:
    """Group a study's frames into stacks; return the other frames with their reasons."""
    left_out: LeftOut = []
    by_series: dict[tuple[str, int], list[Image]] = defaultdict(list)
    for image in images:
        by_series[_series_of(image)].append(image)
    stacks: list[Stack] = []
    piles: list[Pile] = []
    for series in by_series.values():
        if series[0].declared is not None:
            stacks += _of_layout(series, left_out)
        else:
            piles += _piles(series, left_out)
    stacks += [
        stack for group in _alike(_without_flow(piles, left_out)) for stack in _joined(group, left_out)
    ]
    flagged = [_with_losses(stack, by_series) for stack in stacks]
    return sorted(flagged, key=lambda stack: (stack.series, stack.later)), left_out


def _series_of(image: Image) -> tuple[str, int]:
    """Return the key of a series: of DICOM by number too, as some anonymisers leave a study one UID."""
    return image.identity.series, image.series_number if image.rule is None else 0


def _of_layout(series: Sequence[Image], left_out: LeftOut) -> Iterator[Stack]:
    """Yield the stack of the frames that a layout names as one volume."""
    assert series[0].declared is not None
    places = _places_of(series)
    ordered = _ordered(places, series[0].declared.sequence) if len({*map(len, places)}) == 1 else None
    if ordered is None:
        left_out += [(image, Reason.INCOMPLETE, "nothing orders its phases") for image in series]
        return
    yield Stack(ordered[0], (words_of(series[0].description, series[0].protocol),), ())


def _piles(series: Sequence[Image], left_out: LeftOut) -> Iterator[Pile]:
    """Yield the piles of a series: one for each orientation, matrix, spacing, component and echo."""
    words = words_of(series[0].description, series[0].protocol)
    kind = kind_by_tags(series, words)
    buckets: list[list[Image]] = []
    for image in series:
        bucket = next((bucket for bucket in buckets if _is_one_bucket(bucket[0], image)), None)
        if bucket is None:
            buckets.append([image])
        else:
            bucket.append(image)
    for bucket in buckets:
        pile = _pile_of(bucket, words, left_out)
        if reason := kind or _named_kind(pile, words):
            left_out += [(image, Reason.OTHER_IMAGE, reason) for image in pile.images]
        else:
            yield pile


def _is_one_bucket(first: Image, second: Image) -> bool:
    is_one_echo = abs((first.echo or 0) - (second.echo or 0)) < 5
    return _same_grid(first, second) and first.component == second.component and is_one_echo


def _same_grid(first: Image, second: Image) -> bool:
    """Return whether two frames have the same matrix, spacing and orientation."""
    return (
        (first.rows, first.columns) == (second.rows, second.columns)
        and all(abs(mm - rival_mm) < 1e-3 for mm, rival_mm in zip(first.spacing, second.spacing, strict=True))
        and float(np.dot(first.row_direction, second.row_direction)) > _SAME_DIRECTION
        and float(np.dot(first.column_direction, second.column_direction)) > _SAME_DIRECTION
    )


def _pile_of(bucket: Sequence[Image], words: Words, left_out: LeftOut) -> Pile:
    """Make the pile of a bucket: its frames by position, and what sequence they are of."""
    places = _places_of(bucket)
    per_place = Counter(map(len, places)).most_common(1)[0][0]
    witnesses = sequence_witnesses(bucket, per_place, words)
    sequence = sequence_of(witnesses)
    flags: list[Flag] = []
    places = [_once(place, sequence, left_out, flags) for place in places]
    if len(places) == 1 and sequence != "other" and _are_many(bucket, places[0]):
        flags.append(Flag.PLACES)
    return Pile(words, places, witnesses, sequence, flags)


def _are_many(bucket: Sequence[Image], latest: Sequence[Image]) -> bool:
    """Return whether one position has so many images that they may be slices which lost their positions."""
    declared = max(max(image.phases_declared or 0, image.temporals_declared or 0) for image in bucket)
    return len(bucket) >= _MANY * len(latest) or 1 < declared <= len(latest) / 2


def _named_kind(pile: Pile, words: Words) -> str:
    """Return the kind of image by its name that studies do not hold, unless the frames refute the name."""
    if words.kind is None or words.kind in _WEIGHED:
        return ""
    refuted = pile.sequence == "cine" and len(pile.places) >= 5 and len(pile.places[0]) >= 8
    if refuted and words.kind in _OVERRULED:
        pile.flags.append(Flag.WITNESSES)
        return ""
    return words.kind.replace("_", " ")


def _places_of(bucket: Sequence[Image]) -> list[list[Image]]:
    """Group frames by position along the common normal, in ascending order."""
    along = normal(bucket[0])
    places: list[list[Image]] = []
    last = -np.inf
    for here, image in sorted(((_height(image, along), image) for image in bucket), key=lambda pair: pair[0]):
        if here - last < SAME_PLACE_MM:
            places[-1].append(image)
        else:
            places.append([image])
            last = here
    return places


def _height(image: Image, along: np.ndarray) -> float:
    return float(np.dot(image.position, along))


def _once(place: list[Image], sequence: str, left_out: LeftOut, flags: list[Flag]) -> list[Image]:
    """Keep the last acquisition of a slice, or of a phase, that one series holds several times."""
    groups: dict[Hashable, list[Image]] = defaultdict(list)
    if sequence in _REPEAT_KEYS:
        for image in place:
            groups[_REPEAT_KEYS[sequence](image)].append(image)
        again = len(place) - len(groups)
        if len(groups) < 2 or not again or not {None, (None, None, None)}.isdisjoint(groups):
            return place
        if sequence == "perfusion" or min(map(len, groups.values())) < 2:  # not the whole slice
            if again > _REPEATED * len(groups):
                return place
            flags.append(Flag.REPEATS)
    elif sequence in ("lge", "t2") and len(place) > 1:
        groups[None] = place
    else:
        return place
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
        if any(_same_grid(first, flow) and _same_pulse(first, flow) and _near(first, flow) for flow in flows):
            left_out += [(image, Reason.OTHER_IMAGE, "phase contrast") for image in pile.images]
        else:
            remaining.append(pile)
    return remaining


def _near(first: Image, second: Image) -> bool:
    return bool(np.linalg.norm(np.subtract(first.position, second.position)) < SAME_PLACE_MM)


def _alike(piles: Sequence[Pile]) -> list[list[Pile]]:
    """Group piles that may be slices of one stack: same sequence, component, grid and pulse sequence."""
    groups: list[list[Pile]] = []
    for pile in piles:
        for group in groups:
            if _are_one_stack(group[0], pile) and not any(_interleaved(rival, pile) for rival in group):
                group.append(pile)
                break
        else:
            groups.append([pile])
    return groups


def _are_one_stack(pile: Pile, rival: Pile) -> bool:
    first, second = pile.images[0], rival.images[0]
    return (
        first.placed
        and second.placed
        and pile.sequence == rival.sequence
        and pile.words.state == rival.words.state
        and (pile.sequence != "lge" or component_of(first, pile.words) == component_of(second, rival.words))
        and _same_grid(first, second)
        and _same_pulse(first, second)
    )


def _same_pulse(first: Image, second: Image) -> bool:
    """Return whether two frames share a pulse sequence; breath-holds may change its times a little."""
    return (
        (first.scanning, first.variant) == (second.scanning, second.variant)
        and abs((first.flip or 0) - (second.flip or 0)) <= 15
        and abs((first.echo or 0) - (second.echo or 0)) <= 0.3 * max(first.echo or 0, second.echo or 0)
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
    """Yield one stack per number of phases; leave out a number with at most half the largest's slices."""
    by_count: dict[int, list[tuple[Pile, list[Image]]]] = defaultdict(list)
    for pile in group:
        for place in _cut_off(pile, left_out):
            by_count[len(place)].append((pile, place))
    most = max(by_count, key=lambda count: (len(by_count[count]) * count, count))
    few = {
        count for count, each in by_count.items() if count != most and 2 * len(each) <= len(by_count[most])
    }
    for count, places in by_count.items():
        if count in few:
            left_out += [(image, Reason.INCOMPLETE, "") for _, place in places for image in place]
        else:
            yield from _stack(places, [Flag.INCOMPLETE] if few and count == most else [], left_out)


def _cut_off(pile: Pile, left_out: LeftOut) -> list[list[Image]]:
    """Return the slices of a first pass with equally many beats: a stopped series lacks the last of some."""
    fewest, most = min(map(len, pile.places)), max(map(len, pile.places))
    ordered = _ordered(pile.places, pile.sequence)
    if pile.sequence != "perfusion" or most - fewest not in range(1, _STOPPED + 1) or ordered is None:
        return pile.places
    if any(_gaps(ordered[0], pile.sequence)):
        return pile.places
    left_out += [(image, Reason.INCOMPLETE, "") for line in ordered[0] for image in line[fewest:]]
    pile.flags.append(Flag.INCOMPLETE)
    return [list(line[:fewest]) for line in ordered[0]]


def _stack(
    places: Sequence[tuple[Pile, list[Image]]], flags: list[Flag], left_out: LeftOut
) -> Iterator[Stack]:
    """Yield the stacks of slices with equally many phases; of slices at one position the latest counts."""
    along = normal(places[0][1][0])
    slots: list[_Slot] = []
    for pile, place in sorted(places, key=lambda entry: _later(entry[1]), reverse=True):
        here = _height(place[0], along)
        if any(abs(here - there) < SAME_PLACE_MM for there, _, _ in slots):
            left_out += [(image, Reason.REPEAT, "") for image in place]
            flags.append(Flag.REPEATS)
        else:
            slots.append((here, pile, place))
    slots.sort(key=lambda slot: slot[0])
    gaps = np.diff([here for here, _, _ in slots])
    widest = _WIDEST_GAP_MM if len(gaps) < 2 else max(_WIDEST_GAP * float(np.median(gaps)), SAME_PLACE_MM)
    parts = [[slots[0]]]
    for slot, gap in zip(slots[1:], gaps, strict=True):
        if gap > widest and slot[1] is not parts[-1][-1][1]:  # beyond such a gap lies a separate plane
            parts.append([])
        parts[-1].append(slot)
    if len(parts) > 1 and _are_multiples(gaps, float(np.median(gaps))):
        flags.append(Flag.INCOMPLETE)
    for part in parts:
        yield from _ordered_stack(part, flags, left_out)


def _later(place: Line) -> tuple[int, float, int]:
    return max((image.series_number, image.clock or 0.0, image.instance_number) for image in place)


def _ordered_stack(slots: Sequence[_Slot], flags: Sequence[Flag], left_out: LeftOut) -> Iterator[Stack]:
    """Yield the stack of sorted slices with sorted phases; nothing if no key sorts the phases."""
    piles = list({id(pile): pile for _, pile, _ in slots}.values())
    ordered = _ordered([place for _, _, place in slots], piles[0].sequence)
    if ordered is None:
        unordered = [image for _, _, place in slots for image in place]
        left_out += [(image, Reason.INCOMPLETE, "nothing orders its phases") for image in unordered]
        return
    grid, by = ordered
    every = [*flags, *(flag for pile in piles for flag in pile.flags)]
    every += [Flag.ORDER_BY_DEFAULT] if by == "number" else []
    gaps = np.diff([here for here, _, _ in slots])
    thickness = slots[0][2][0].thickness
    if len(gaps) > 1 and np.max(np.abs(gaps - np.median(gaps))) > max(0.1 * float(np.median(gaps)), 0.3):
        every.append(Flag.INCOMPLETE)  # a slice is missing or foreign
    if thickness is not None and len(gaps) and len(grid[0]) > 1 and float(np.min(gaps)) < 0.5 * thickness:
        every.append(Flag.PLACES)  # some phases of these slices may lie elsewhere
    witnesses = max((pile.witnesses for pile in piles), key=len)
    yield Stack(grid, tuple(pile.words for pile in piles), tuple(witnesses), tuple(dict.fromkeys(every)))


def _ordered(places: Sequence[Line], sequence: str) -> tuple[tuple[tuple[Image, ...], ...], str] | None:
    """Sort each slice's frames by the first key that distinguishes them all; return the key's name too."""
    if all(len(place) == 1 for place in places):
        return tuple(tuple(place) for place in places), ""
    names = ("temporal", "clock", "trigger") if sequence == "perfusion" else ("trigger", "temporal", "clock")
    for name in (*names, "number"):
        key = _KEYS[name]
        values = [[key(image) for image in place] for place in places]
        if all(None not in line and len(set(line)) == len(line) for line in values):
            return tuple(tuple(sorted(place, key=lambda image: key(image) or 0.0)) for place in places), name
    return None


def _with_losses(stack: Stack, by_series: Mapping[tuple[str, int], Sequence[Image]]) -> Stack:
    """Return the stack flagged with what its frames and their headers say, and with what it lacks."""
    declared = stack.first.declared
    sequence = sequence_of(stack.witnesses) if declared is None else declared.sequence
    series = [by_series[key] for key in {_series_of(image) for image in stack.images()}]
    flags = [*stack.flags, *(flag for image in stack.images() for flag in image.flags)]
    gaps = _gaps(stack.grid, sequence)
    if any(in_slice != gaps[0] for in_slice in gaps):
        flags.append(Flag.PHASES)  # each slice lacks others: the volume would mix phases
    elif gaps[0] or _lacks_phases(stack, sequence) or _lacks_slices(stack) or any(map(_is_short, series)):
        flags.append(Flag.INCOMPLETE)
    return replace(stack, flags=tuple(dict.fromkeys(flags)))


def _gaps(lines: Sequence[Line], sequence: str) -> list[dict[int, int]]:
    """Return how many phases each slice lacks, by the rank before which they are missing.

    Phases of a cine are even in time, so times count them. Beats are not: their clock shows what is lost.
    """
    gaps: list[dict[int, int]] = [{} for _ in lines]
    if min(map(len, lines)) < _FEWEST:
        return gaps
    trigger, temporal, clock, number = (_rising(lines, key) for key in _KEYS.values())
    is_fine = any(value != int(value) for line in clock for value in line)  # not of whole seconds
    times = clock if sequence != "cine" and is_fine else trigger
    counts = [values for values in (times, temporal) if values]
    for values in counts or ([number] if number else []):
        first = min(line[0] for line in values) if counts else None
        for in_slice, line in zip(gaps, values, strict=True):
            for rank, count in _gaps_of(line, first, _LATE if sequence == "cine" else _LATE_BEAT).items():
                in_slice[rank] = max(count, in_slice.get(rank, 0))
    return gaps


def _gaps_of(line: Sequence[float], first: float | None, latest: float) -> dict[int, int]:
    """Return the gaps of one slice; `first`: where the first of all slices begins."""
    usual = float(np.median(np.diff(line)))
    steps = np.diff(line) / usual
    wide = np.flatnonzero(steps > _WIDE)
    few = wide.size <= max(1, _IRREGULAR * len(line))
    within = {int(rank) + 1: round(float(steps[rank])) - 1 for rank in wide} if few else {}
    late = 0.0 if first is None else (line[0] - first) / usual
    return within | ({0: max(round(late), 1)} if late > latest else {})


def _rising(lines: Sequence[Line], key: Callable[[Image], float | None]) -> list[list[float]]:
    """Return values by slice and phase; none unless every phase has a larger one than that before."""
    values: list[list[float]] = []
    for line in lines:
        numbers = [float(value) for image in line if (value := key(image)) is not None]
        if len(numbers) != len(line) or np.any(np.diff(numbers) <= 0):
            return []
        values.append(numbers)
    return values


def _lacks_phases(stack: Stack, sequence: str) -> bool:
    """Return whether headers count more phases, or the phases of most slices end before the heartbeat."""
    if stack.n_phases == 1:
        return False
    is_cine = sequence == "cine"
    for image in stack.images():
        if max((image.phases_declared or 0) * is_cine, image.temporals_declared or 0) > stack.n_phases:
            return True
    uncovered: list[float] = []
    for line, triggers in zip(stack.grid, _rising(stack.grid, _KEYS["trigger"]), strict=False):
        beats = [image.beat for image in line if image.beat]
        is_told = bool(beats) and len(line) >= _FEWEST
        step = float(np.median(np.diff(triggers)))
        uncovered.append(float(np.median(beats)) / step - len(line) if is_told else 0.0)
    return is_cine and bool(uncovered) and float(np.median(uncovered)) > _UNCOVERED


def _lacks_slices(stack: Stack) -> bool:
    """Return whether slices lie a multiple of the distance apart that the header declares."""
    apart = abs(stack.first.apart or 0.0)
    if stack.n_slices < 2 or apart < max(0.9 * (stack.first.thickness or 0.0), 1.0):
        return False
    return stack.step > _WIDE * apart and _are_multiples(np.array([stack.step]), apart)


def _are_multiples(distances: np.ndarray, unit: float) -> bool:
    """Return whether distances of slices are whole numbers of a unit, as where slices between are lost."""
    shares = distances / unit
    return bool(np.all(np.abs(shares - np.round(shares)) <= 0.1) and np.all(shares > 1 / 2))


def _is_short(series: Sequence[Image]) -> bool:
    """Return whether a series lacks some, not many, of the images that its numbers or its count tell of."""
    numbers = {image.instance_number // _FRAMES for image in series}
    most = max(1.0, _IRREGULAR * len(series))
    declared = max(image.images_declared or 0 for image in series)
    if 0 < declared - len(series) <= max(1, len(series) // 2):  # else it counts something else
        return True
    if len(numbers) < _FEWEST:
        return False
    first = min(numbers)
    absent = max(numbers) - (min(first, 1) if first <= most + 1 else first) + 1 - len(numbers)
    return 0 < absent <= most


def placed_by_location(images: Sequence[Image]) -> list[Image]:
    """Return the frames, flagged and moved by SliceLocation where it tells more slices than positions do.

    Its sign is each maker's own, so the slices' direction is not known.
    """
    groups: dict[Hashable, list[Image]] = defaultdict(list)
    for image in images:
        if image.rule is None and image.location is not None:
            name = re.sub(r"\d+", "", image.description) or image.identity.series  # some number their series
            directions = np.round((*image.row_direction, *image.column_direction), 2) + 0.0
            groups[name, image.rows, image.columns, tuple(directions)].append(image)
    moved: dict[Image, Image] = {}
    for group in groups.values():
        along = normal(group[0])
        locations = [image.location or 0.0 for image in group]
        if _n_places(locations) > _n_places([_height(image, along) for image in group]):
            for image, location in zip(group, locations, strict=True):
                position = vector(np.array(group[0].position) + (location - locations[0]) * along)
                moved[image] = replace(image, position=position, flags=(*image.flags, Flag.PLACES))
    return [moved.get(image, image) for image in images]


def _n_places(values: Sequence[float]) -> int:
    return 1 + int(np.sum(np.diff(sorted(values)) >= SAME_PLACE_MM))
