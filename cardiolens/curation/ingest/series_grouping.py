"""Group the frames of a study into stacks: by orientation, matrix and spacing, then by position and phase.

The position along the normal gives the slice. The rank of the trigger time within a slice gives the phase,
because RR intervals differ between breath-holds. Several series of one slice each form one stack; of a
repeated slice only the latest acquisition is kept.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cardiolens.curation.ingest.evidence import Witness, best, weigh
from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.losses import Loss, are_multiples, lacks_within, losses
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.sequence import CLASSES, kind_by_tags, sequence_witnesses
from cardiolens.curation.ingest.stack import Stack, normal
from cardiolens.curation.ingest.words import Words, words_of

SAME_DIRECTION = np.cos(np.radians(1.0))
SAME_PLACE_MM = 0.5
_OVERRULED = ("map", "ti_scout")  # kinds by name that a cine stack of five slices refutes
_WEIGHED = ("localizer", "scout", "other_part")  # kinds by name that are one witness among others

WIDEST_GAP_MM = 20.0  # between two slices of two series
WIDEST_GAP = 2.2  # gap / median gap: at most one slice is lost

_REPEATED = 0.25  # share of the phases of a slice that are there twice, from which they are no repeats
_LACKS_SLICES = {"uneven_spacing", "incomplete_slices_left_out"}  # flags

_STOPPED = 2  # last beats, at most, that a stopped first pass lacks in some slices

LeftOut = list[tuple[Image, Reason]]


@dataclass
class _Pile:
    """Frames of one series in one orientation and component, sorted by position."""

    words: Words
    places: list[list[Image]]
    witnesses: list[Witness]
    sequence: str
    flags: list[str] = field(default_factory=list)

    @property
    def images(self) -> list[Image]:
        return [image for place in self.places for image in place]


_Slot = tuple[float, _Pile, list[Image]]  # position along the normal, pile, frames


def stacks_of(images: Sequence[Image]) -> tuple[list[Stack], LeftOut]:
    """Group a study's frames into stacks; return the other frames with their reasons."""
    left_out: LeftOut = []
    piles: list[_Pile] = []
    by_series: dict[tuple[str, int], list[Image]] = {}
    for image in images:
        by_series.setdefault(_series_of(image), []).append(image)
    declared = [series for series in by_series.values() if series[0].declared is not None]
    layout_stacks = [stack for series in declared for stack in _of_layout(series, left_out)]
    for series in by_series.values():
        if series[0].declared is not None:
            continue
        words = words_of(series[0].description, series[0].protocol)
        reason = kind_by_tags(series, words)
        for bucket in _buckets(series):
            pile = _pile(bucket, words, left_out)
            kind = _named_kind(pile, words)
            if (reason or kind) is not None:
                left_out += [(image, reason or kind or Reason.OTHER_SEQUENCE) for image in pile.images]
            else:
                piles.append(pile)
    piles = _without_flow(piles, left_out)
    stacks = layout_stacks + [stack for group in _alike(piles) for stack in _joined(group, left_out)]
    flagged = [_with_losses(stack, by_series) for stack in stacks]
    return sorted(flagged, key=lambda stack: (stack.series, stack.later)), left_out


def _series_of(image: Image) -> tuple[str, int]:
    """Return the key of a series: of DICOM by number too, as some anonymisers leave a study one UID."""
    return image.identity.series, image.series_number if image.reading is None else 0


def _with_losses(stack: Stack, by_series: Mapping[tuple[str, int], Sequence[Image]]) -> Stack:
    """Return the stack flagged with what it lacks, unless it is known to lack whole slices."""
    declared = stack.first.declared
    sequence = _sequence(stack.witnesses) if declared is None else declared.sequence
    every_series = [by_series[series] for series in {_series_of(image) for image in stack.images()}]
    explained = _LACKS_SLICES & set(stack.flags)
    flags = [
        flag for flag in losses(stack, sequence, every_series) if flag is not Loss.IMAGES or not explained
    ]
    return replace(stack, flags=tuple(dict.fromkeys((*stack.flags, *flags))))


def _of_layout(series: Sequence[Image], left_out: LeftOut) -> Iterator[Stack]:
    """Yield the stack of the frames that a layout names as one volume."""
    assert series[0].declared is not None
    sequence = series[0].declared.sequence
    places = _places(series)
    ordered = _ordered(places, sequence) if len({len(place) for place in places}) == 1 else None
    if ordered is None:
        left_out += [(image, Reason.UNORDERED) for image in series]
        return
    flags = [flag for image in series if image.reading for flag in image.reading.flags]
    words = words_of(series[0].description, series[0].protocol)
    yield Stack(ordered[0], (words,), (), tuple(dict.fromkeys(flags)))


def _without_flow(piles: Sequence[_Pile], left_out: LeftOut) -> list[_Pile]:
    """Drop magnitude images of phase contrast: same grid, pulse sequence and position as a velocity image."""
    flows = [image for image, reason in left_out if reason is Reason.PHASE_CONTRAST]
    frames = []
    for pile in piles:
        first = pile.images[0]
        if any(
            _same_grid(first, flow) and _same_pulse(first, flow) and _same_place(first, flow)
            for flow in flows
        ):
            left_out += [(image, Reason.PHASE_CONTRAST) for image in pile.images]
        else:
            frames.append(pile)
    return frames


def _same_place(first: Image, second: Image) -> bool:
    return bool(np.linalg.norm(np.subtract(first.position, second.position)) < SAME_PLACE_MM)


def _named_kind(pile: _Pile, words: Words) -> Reason | None:
    """Return the reason to leave out a series by its name, unless its frames refute the name."""
    if words.kind is None or words.kind in _WEIGHED:
        return None
    refuted = pile.sequence == "cine" and len(pile.places) >= 5 and len(pile.places[0]) >= 8
    if refuted and words.kind in _OVERRULED:
        pile.flags.append("name_refuted")
        return None
    return Reason(words.kind)


def _buckets(series: Sequence[Image]) -> list[list[Image]]:
    """Split a series by orientation (1 degree), matrix, spacing, component and echo."""
    buckets: list[list[Image]] = []
    for image in series:
        for bucket in buckets:
            if _one_bucket(bucket[0], image):
                bucket.append(image)
                break
        else:
            buckets.append([image])
    return buckets


def _one_bucket(first: Image, second: Image) -> bool:
    return (
        _same_grid(first, second)
        and first.component == second.component
        and abs((first.echo or 0) - (second.echo or 0)) < 5
    )


def _same_grid(first: Image, second: Image) -> bool:
    return (
        (first.rows, first.columns) == (second.rows, second.columns)
        and np.allclose(first.spacing, second.spacing, atol=1e-3)
        and float(np.dot(first.row_direction, second.row_direction)) > SAME_DIRECTION
        and float(np.dot(first.column_direction, second.column_direction)) > SAME_DIRECTION
    )


def _pile(bucket: Sequence[Image], words: Words, left_out: LeftOut) -> _Pile:
    places = _places(bucket)
    per_place = Counter(map(len, places)).most_common(1)[0][0]
    witnesses = sequence_witnesses(bucket, per_place, words)
    sequence = _sequence(witnesses)
    flags: list[str] = []
    places = [_once(place, sequence, left_out, flags) for place in places]
    return _Pile(words, places, witnesses, sequence, flags)


def _sequence(witnesses: Sequence[Witness]) -> str:
    return best(weigh(witnesses, CLASSES))[0] if witnesses else "other"


def _places(bucket: Sequence[Image]) -> list[list[Image]]:
    """Group frames by position along the common normal, in ascending order."""
    along = normal(bucket[0])
    ordered = sorted(bucket, key=lambda image: float(np.dot(image.position, along)))
    places: list[list[Image]] = []
    for image in ordered:
        here = float(np.dot(image.position, along))
        if places and here - float(np.dot(places[-1][0].position, along)) < SAME_PLACE_MM:
            places[-1].append(image)
        else:
            places.append([image])
    return places


def _once(place: list[Image], sequence: str, left_out: LeftOut, flags: list[str]) -> list[Image]:
    """Keep the last acquisition of a slice, or of a phase, that one series holds several times."""
    if sequence in _TIMES:
        groups: dict[object, list[Image]] = {}
        for image in place:
            groups.setdefault(_TIMES[sequence](image), []).append(image)
        again = len(place) - len(groups)
        if len(groups) < 2 or not again or any(_is_untimed(key) for key in groups):
            return place
        if sequence == "perfusion" or min(map(len, groups.values())) < 2:  # not the whole slice
            if again > _REPEATED * len(groups):
                return place
            flags.append("repeated_frames_left_out")
    elif sequence in ("lge", "t2") and len(place) > 1:
        groups = {None: place}
    else:
        return place
    unique = []
    for copies in groups.values():
        copies.sort(key=lambda image: (image.acquisition, image.clock or 0.0, image.instance_number))
        left_out += [(image, Reason.REPEAT) for image in copies[:-1]]
        unique.append(copies[-1])
    return unique


_TIMES: dict[str, Callable[[Image], object]] = {  # frames of a slice with the same are one phase
    "cine": lambda image: image.trigger,
    "perfusion": lambda image: (image.temporal, image.clock, image.trigger),
}


def _is_untimed(key: object) -> bool:
    return key is None or key == (None, None, None)


def _alike(piles: Sequence[_Pile]) -> list[list[_Pile]]:
    """Group piles that may be slices of one stack: same sequence, component, grid and pulse sequence."""
    groups: list[list[_Pile]] = []
    for pile in piles:
        for group in groups:
            if _one_stack(group[0], pile) and not any(_interleaved(rival, pile) for rival in group):
                group.append(pile)
                break
        else:
            groups.append([pile])
    return groups


def _one_stack(one: _Pile, other: _Pile) -> bool:
    first, second = one.images[0], other.images[0]
    have_places = all(image.reading is None or image.reading.placed for image in (first, second))
    return (
        have_places
        and one.sequence == other.sequence
        and one.words.state == other.words.state
        and _component(one) == _component(other)
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


def _interleaved(one: _Pile, other: _Pile) -> bool:
    """Return whether the slices of two piles interleave at different positions: two stacks, not one."""
    along = normal(one.images[0])
    first, second = (
        [float(np.dot(place[0].position, along)) for place in pile.places] for pile in (one, other)
    )
    if min(len(first), len(second)) < 3:
        return False
    inside = [here for here in second if first[0] - SAME_PLACE_MM <= here <= first[-1] + SAME_PLACE_MM]
    return any(all(abs(here - there) >= SAME_PLACE_MM for there in first) for here in inside)


def _component(pile: _Pile) -> str:
    """Return the component of a late enhancement pile; empty for other sequences."""
    return component_of(pile.images[0], pile.words) if pile.sequence == "lge" else ""


def component_of(image: Image, words: Words) -> str:
    """Return `psir` for a phase-sensitive image, else `magnitude`."""
    if image.component in ("P", "R") or {"PSIR", "PS", "REAL"} & set(image.image_type):
        return "psir"
    if image.component != "M" and words.component is None and image.image_type[:1] == ("DERIVED",):
        return "psir"
    return "magnitude" if image.component == "M" else words.component or "magnitude"


def _joined(group: Sequence[_Pile], left_out: LeftOut) -> Iterator[Stack]:
    """Yield one stack per number of phases; leave out a number with at most half the largest's slices."""
    by_count: dict[int, list[tuple[_Pile, list[Image]]]] = {}
    for pile in group:
        for place in _cut_off(pile, left_out):
            by_count.setdefault(len(place), []).append((pile, place))
    most = max(by_count, key=lambda count: (len(by_count[count]) * count, count))
    for count, places in by_count.items():
        if count != most and 2 * len(places) <= len(by_count[most]):
            left_out += [(image, Reason.INCOMPLETE_SLICE) for _, place in places for image in place]
            continue
        is_incomplete = any(
            2 * len(piles) <= len(by_count[most]) for other, piles in by_count.items() if other != most
        )
        yield from _stack(places, left_out, incomplete=is_incomplete and count == most)


def _cut_off(pile: _Pile, left_out: LeftOut) -> list[list[Image]]:
    """Return the slices of a first pass with equally many beats: a stopped series lacks the last of some."""
    fewest, most = (count(map(len, pile.places)) for count in (min, max))
    ordered = _ordered(pile.places, pile.sequence)
    if pile.sequence != "perfusion" or most - fewest not in range(1, _STOPPED + 1) or ordered is None:
        return pile.places
    if lacks_within(ordered[0], pile.sequence):
        return pile.places
    left_out += [(image, Reason.INCOMPLETE_SLICE) for line in ordered[0] for image in line[fewest:]]
    pile.flags.append("incomplete_slices_left_out")
    return [list(line[:fewest]) for line in ordered[0]]


def _stack(
    places: Sequence[tuple[_Pile, list[Image]]], left_out: LeftOut, *, incomplete: bool
) -> Iterator[Stack]:
    along = normal(places[0][1][0])
    slots: list[_Slot] = []
    flags: list[str] = ["incomplete_slices_left_out"] if incomplete else []
    for pile, place in sorted(places, key=lambda entry: _later(entry[1]), reverse=True):
        here = float(np.dot(place[0].position, along))
        if any(abs(here - there) < SAME_PLACE_MM for there, _, _ in slots):
            left_out += [(image, Reason.REPEAT) for image in place]
            flags.append("repeated_slices_left_out")
        else:
            slots.append((here, pile, place))
    slots.sort(key=lambda slot: slot[0])
    parts = _parts(slots)
    if len(parts) > 1 and are_multiples(*_distances(slots)):
        flags.append(Loss.SLICES)
    for part in parts:
        yield from _whole(part, flags, left_out)


def _parts(slots: Sequence[_Slot]) -> list[list[_Slot]]:
    """Split slices at gaps too wide for one lost slice: beyond such a gap lies a separate plane."""
    gaps = np.diff([here for here, _, _ in slots])
    widest = WIDEST_GAP_MM if len(gaps) < 2 else max(WIDEST_GAP * float(np.median(gaps)), SAME_PLACE_MM)
    parts = [[slots[0]]]
    for slot, gap in zip(slots[1:], gaps, strict=True):
        if gap > widest and slot[1] is not parts[-1][-1][1]:
            parts.append([])
        parts[-1].append(slot)
    return parts


def _distances(slots: Sequence[_Slot]) -> tuple[list[float], float]:
    """Return the distances of neighbouring slices, and the usual one."""
    distances = np.diff([here for here, _, _ in slots])
    return distances.tolist(), float(np.median(distances))


def _whole(slots: Sequence[_Slot], reasons: Sequence[str], left_out: LeftOut) -> Iterator[Stack]:
    """Yield the stack of sorted slices with sorted phases; nothing if no key sorts the phases."""
    flags = list(reasons)
    piles = list({id(pile): pile for _, pile, _ in slots}.values())
    flags += [flag for pile in piles for flag in pile.flags]
    flags += [flag for pile in piles if (reading := pile.images[0].reading) for flag in reading.flags]
    ordered = _ordered([place for _, _, place in slots], piles[0].sequence)
    if ordered is None:
        left_out += [(image, Reason.UNORDERED) for _, _, place in slots for image in place]
        return
    grid, by = ordered
    if by == "instance number":
        flags.append("phases_by_instance_number")
    flags += _uneven([slot[0] for slot in slots])
    flags += _overlapping(slots)
    witnesses = max((pile.witnesses for pile in piles), key=len)
    yield Stack(grid, tuple(pile.words for pile in piles), tuple(witnesses), tuple(dict.fromkeys(flags)))


def _later(place: Sequence[Image]) -> tuple[int, float, int]:
    return max((image.series_number, image.clock or 0.0, image.instance_number) for image in place)


def _uneven(places: Sequence[float]) -> list[str]:
    """Flag gaps between slices that differ by more than a tenth: a slice is missing or foreign."""
    gaps = np.diff(places)
    if len(gaps) < 2 or float(np.max(np.abs(gaps - np.median(gaps)))) <= max(
        0.1 * float(np.median(gaps)), 0.3
    ):
        return []
    return ["uneven_spacing"]


def _overlapping(slots: Sequence[_Slot]) -> list[str]:
    """Flag slices of several phases that are nearer than half of their thickness.

    Of such a slice other phases lie elsewhere, as where a tool has moved some images of a series.
    """
    thickness = slots[0][2][0].thickness
    if thickness is None or len(slots) < 2 or len(slots[0][2]) == 1:
        return []
    nearest = float(np.min(np.diff([here for here, _, _ in slots])))
    return ["slices_overlap"] if nearest < 0.5 * thickness else []


_KEYS: dict[str, Callable[[Image], float | None]] = {
    "trigger time": lambda image: image.trigger,
    "temporal position": lambda image: image.temporal,
    "clock": lambda image: image.clock,
    "instance number": lambda image: image.instance_number,
}
_CINE_KEYS = ("trigger time", "temporal position", "clock", "instance number")
_PASS_KEYS = ("temporal position", "clock", "trigger time", "instance number")


def _ordered(
    places: Sequence[Sequence[Image]], sequence: str
) -> tuple[tuple[tuple[Image, ...], ...], str] | None:
    """Sort each slice's frames by the first key that distinguishes them all; return the key's name too."""
    if all(len(place) == 1 for place in places):
        return tuple(tuple(place) for place in places), "nothing"
    for name in _PASS_KEYS if sequence == "perfusion" else _CINE_KEYS:
        key = _KEYS[name]
        values = [[key(image) for image in place] for place in places]
        if all(None not in line and len(set(line)) == len(line) for line in values):
            return tuple(tuple(sorted(place, key=lambda image: key(image) or 0.0)) for place in places), name
    return None


def reversed_stack(stack: Stack) -> Stack:
    """Return the stack with its slices in reverse order."""
    return replace(stack, grid=stack.grid[::-1])
