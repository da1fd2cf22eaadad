"""Join slices of piles to stacks: equally many phases, one acquisition of a slice, no gap too wide."""

from collections.abc import Iterator, Sequence

import numpy as np

from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.losses import Loss, are_multiples, lacks_within
from cardiolens.curation.ingest.phase_order import ordered_phases
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.series_piles import SAME_PLACE_MM, LeftOut, Pile
from cardiolens.curation.ingest.stack import Stack, normal

WIDEST_GAP_MM = 20.0  # between two slices of two series
WIDEST_GAP = 2.2  # gap / median gap: at most one slice is lost
_STOPPED = 2  # last beats, at most, that a stopped first pass lacks in some slices
_Slot = tuple[float, Pile, list[Image]]  # position along the normal, pile, frames


def joined_stacks(group: Sequence[Pile], left_out: LeftOut) -> Iterator[Stack]:
    """Yield one stack per number of phases; leave out a number with at most half the largest's slices."""
    by_count: dict[int, list[tuple[Pile, list[Image]]]] = {}
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


def _cut_off(pile: Pile, left_out: LeftOut) -> list[list[Image]]:
    """Return the slices of a first pass with equally many beats: a stopped series lacks the last of some."""
    fewest, most = (count(map(len, pile.places)) for count in (min, max))
    ordered = ordered_phases(pile.places, pile.sequence)
    if pile.sequence != "perfusion" or most - fewest not in range(1, _STOPPED + 1) or ordered is None:
        return pile.places
    if lacks_within(ordered[0], pile.sequence):
        return pile.places
    left_out += [(image, Reason.INCOMPLETE_SLICE) for line in ordered[0] for image in line[fewest:]]
    pile.flags.append("incomplete_slices_left_out")
    return [list(line[:fewest]) for line in ordered[0]]


def _stack(
    places: Sequence[tuple[Pile, list[Image]]], left_out: LeftOut, *, incomplete: bool
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
        yield from _ordered_stack(part, flags, left_out)


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


def _ordered_stack(slots: Sequence[_Slot], reasons: Sequence[str], left_out: LeftOut) -> Iterator[Stack]:
    """Yield the stack of sorted slices with sorted phases; nothing if no key sorts the phases."""
    flags = list(reasons)
    piles = list({id(pile): pile for _, pile, _ in slots}.values())
    flags += [flag for pile in piles for flag in pile.flags]
    flags += [flag for pile in piles if (reading := pile.images[0].reading) for flag in reading.flags]
    ordered = ordered_phases([place for _, _, place in slots], piles[0].sequence)
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
