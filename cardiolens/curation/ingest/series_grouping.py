"""Group the frames of a study into stacks: by orientation, matrix and spacing, then by position and phase.

The position along the normal gives the slice. The rank of the trigger time within a slice gives the phase,
because RR intervals differ between breath-holds. Several series of one slice each form one stack; of a
repeated slice only the latest acquisition is kept.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.joined_slices import joined_stacks
from cardiolens.curation.ingest.losses import Loss, losses
from cardiolens.curation.ingest.phase_order import ordered_phases
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.sequence import kind_by_tags
from cardiolens.curation.ingest.series_piles import (
    SAME_PLACE_MM,
    LeftOut,
    Pile,
    buckets,
    named_kind,
    pile_of,
    places_of,
    same_grid,
    sequence_of,
)
from cardiolens.curation.ingest.stack import Stack, normal
from cardiolens.curation.ingest.words import Words, words_of

_LACKS_SLICES = {"uneven_spacing", "incomplete_slices_left_out"}  # flags


def stacks_of(images: Sequence[Image]) -> tuple[list[Stack], LeftOut]:
    """Group a study's frames into stacks; return the other frames with their reasons."""
    left_out: LeftOut = []
    piles: list[Pile] = []
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
        for bucket in buckets(series):
            pile = pile_of(bucket, words, left_out)
            kind = named_kind(pile, words)
            if (reason or kind) is not None:
                left_out += [(image, reason or kind or Reason.OTHER_SEQUENCE) for image in pile.images]
            else:
                piles.append(pile)
    piles = _without_flow(piles, left_out)
    stacks = layout_stacks + [stack for group in _alike(piles) for stack in joined_stacks(group, left_out)]
    flagged = [_with_losses(stack, by_series) for stack in stacks]
    return sorted(flagged, key=lambda stack: (stack.series, stack.later)), left_out


def _series_of(image: Image) -> tuple[str, int]:
    """Return the key of a series: of DICOM by number too, as some anonymisers leave a study one UID."""
    return image.identity.series, image.series_number if image.reading is None else 0


def _with_losses(stack: Stack, by_series: Mapping[tuple[str, int], Sequence[Image]]) -> Stack:
    """Return the stack flagged with what it lacks, unless it is known to lack whole slices."""
    declared = stack.first.declared
    sequence = sequence_of(stack.witnesses) if declared is None else declared.sequence
    every_series = [by_series[series] for series in {_series_of(image) for image in stack.images()}]
    explained = _LACKS_SLICES & set(stack.flags)
    flags = [
        flag for flag in losses(stack, sequence, every_series) if flag is not Loss.IMAGES or not explained
    ]
    own = [flag for image in stack.images() for flag in image.flags]
    return replace(stack, flags=tuple(dict.fromkeys((*stack.flags, *own, *flags))))


def _of_layout(series: Sequence[Image], left_out: LeftOut) -> Iterator[Stack]:
    """Yield the stack of the frames that a layout names as one volume."""
    assert series[0].declared is not None
    sequence = series[0].declared.sequence
    places = places_of(series)
    ordered = ordered_phases(places, sequence) if len({len(place) for place in places}) == 1 else None
    if ordered is None:
        left_out += [(image, Reason.UNORDERED) for image in series]
        return
    flags = [flag for image in series if image.reading for flag in image.reading.flags]
    words = words_of(series[0].description, series[0].protocol)
    yield Stack(ordered[0], (words,), (), tuple(dict.fromkeys(flags)))


def _without_flow(piles: Sequence[Pile], left_out: LeftOut) -> list[Pile]:
    """Drop magnitude images of phase contrast: same grid, pulse sequence and position as a velocity image."""
    flows = [image for image, reason in left_out if reason is Reason.PHASE_CONTRAST]
    frames = []
    for pile in piles:
        first = pile.images[0]
        if any(
            same_grid(first, flow) and _same_pulse(first, flow) and _same_place(first, flow) for flow in flows
        ):
            left_out += [(image, Reason.PHASE_CONTRAST) for image in pile.images]
        else:
            frames.append(pile)
    return frames


def _same_place(first: Image, second: Image) -> bool:
    return bool(np.linalg.norm(np.subtract(first.position, second.position)) < SAME_PLACE_MM)


def _alike(piles: Sequence[Pile]) -> list[list[Pile]]:
    """Group piles that may be slices of one stack: same sequence, component, grid and pulse sequence."""
    groups: list[list[Pile]] = []
    for pile in piles:
        for group in groups:
            if _one_stack(group[0], pile) and not any(_interleaved(rival, pile) for rival in group):
                group.append(pile)
                break
        else:
            groups.append([pile])
    return groups


def _one_stack(one: Pile, other: Pile) -> bool:
    first, second = one.images[0], other.images[0]
    have_places = all(image.reading is None or image.reading.placed for image in (first, second))
    return (
        have_places
        and one.sequence == other.sequence
        and one.words.state == other.words.state
        and _component(one) == _component(other)
        and same_grid(first, second)
        and _same_pulse(first, second)
    )


def _same_pulse(first: Image, second: Image) -> bool:
    """Return whether two frames share a pulse sequence; breath-holds may change its times a little."""
    return (
        (first.scanning, first.variant) == (second.scanning, second.variant)
        and abs((first.flip or 0) - (second.flip or 0)) <= 15
        and abs((first.echo or 0) - (second.echo or 0)) <= 0.3 * max(first.echo or 0, second.echo or 0)
    )


def _interleaved(one: Pile, other: Pile) -> bool:
    """Return whether the slices of two piles interleave at different positions: two stacks, not one."""
    along = normal(one.images[0])
    first, second = (
        [float(np.dot(place[0].position, along)) for place in pile.places] for pile in (one, other)
    )
    if min(len(first), len(second)) < 3:
        return False
    inside = [here for here in second if first[0] - SAME_PLACE_MM <= here <= first[-1] + SAME_PLACE_MM]
    return any(all(abs(here - there) >= SAME_PLACE_MM for there in first) for here in inside)


def _component(pile: Pile) -> str:
    """Return the component of a late enhancement pile; empty for other sequences."""
    return component_of(pile.images[0], pile.words) if pile.sequence == "lge" else ""


def component_of(image: Image, words: Words) -> str:
    """Return `psir` for a phase-sensitive image, else `magnitude`."""
    if image.component in ("P", "R") or {"PSIR", "PS", "REAL"} & set(image.image_type):
        return "psir"
    if image.component != "M" and words.component is None and image.image_type[:1] == ("DERIVED",):
        return "psir"
    return "magnitude" if image.component == "M" else words.component or "magnitude"


def reversed_stack(stack: Stack) -> Stack:
    """Return the stack with its slices in reverse order."""
    return replace(stack, grid=stack.grid[::-1])
