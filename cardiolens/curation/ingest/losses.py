"""What a stack lacks: frames and slices that its own numbers, times and counts tell of.

An archive may lose the same phase of every slice. The grid is whole then, and one frame short: only gaps
in what counts the frames show it.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.stack import Stack

_WIDE = 1.6  # gap / usual step between two phases
_UNCOVERED = 0.8  # phases that a heartbeat would hold beyond those that are there
_LATE = {"cine": 0.6}  # first phase of a slice behind that of the others / usual step
_LATE_BEAT = 0.9  # the same of a first pass, whose slices follow one another within a beat
_IRREGULAR = 0.2  # share of wide gaps, or of absent numbers, from which they do not count the frames
_FEWEST = 8  # phases or images that tell a usual step
_MULTIPLE = 0.1  # tolerance of a multiple of the distance of slices
_FRAMES = 100_000  # instance numbers of frames per file

Line = Sequence[Image]  # the phases of a slice


@dataclass(frozen=True, slots=True)
class Counts:
    """What counts the phases, by slice and phase, and whether slices begin alike."""

    values: list[list[float]]
    comparable: bool


Gaps = dict[int, int]  # how many phases a slice lacks, by the rank before which they are missing


class Loss(StrEnum):
    """Flag of a stack that lacks something."""

    PHASES = "phases_missing"  # the same of every slice
    UNLIKE = "phases_do_not_correspond"  # of each slice another: the volume would mix phases
    SLICES = "slices_missing"
    END = "cycle_not_covered"  # the last phases are lost, or a scan triggered by the beat ended before it
    TIME = "gap_in_time"  # a beat of a first pass is lost, or the scanner missed it
    IMAGES = "images_missing"  # of its series, wherever they belong


def losses(stack: Stack, sequence: str, every_series: Sequence[Sequence[Image]]) -> list[Loss]:
    """Return what a stack lacks; `every_series`: all images of each series that it is made of."""
    flags = _lost_phases(stack.grid, sequence)
    if _every_so_many(stack):
        flags.append(Loss.SLICES)
    return flags or ([Loss.IMAGES] if any(map(_is_short, every_series)) else [])


def lacks_within(lines: Sequence[Line], sequence: str) -> bool:
    """Return whether some slice lacks a phase before its last one."""
    return any(any(gaps) for gaps in (_gaps(lines, counts, sequence) for counts in _counts(lines, sequence)))


def are_multiples(distances: Collection[float], unit: float) -> bool:
    """Return whether distances of slices are whole numbers of a unit, as where slices between are lost."""
    shares = np.array(list(distances)) / unit
    return bool(np.all(np.abs(shares - np.round(shares)) <= _MULTIPLE) and np.all(shares > 1 / 2))


def _lost_phases(lines: Sequence[Line], sequence: str) -> list[Loss]:
    if len(lines[0]) == 1:
        return []
    counted, timed = (_gaps(lines, counts, sequence) for counts in _counts(lines, sequence))
    if any(in_slice != gaps[0] for gaps in (counted, timed) for in_slice in gaps):
        return [Loss.UNLIKE]
    declared = max(_declared(image, sequence) for line in lines for image in line)
    if counted[0] or declared > len(lines[0]):
        return [Loss.PHASES]
    if sequence == "cine" and _ends_early(lines):
        return [Loss.END]
    return [Loss.TIME] if timed[0] else []


def _ends_early(lines: Sequence[Line]) -> bool:
    """Return whether the phases of most slices leave out at least one at the end of the heartbeat."""
    uncovered: list[float] = []
    for line, triggers in zip(lines, _rising(lines, lambda image: image.trigger), strict=False):
        beats = [beat for image in line if (beat := image.beat)]
        step = float(np.median(np.diff(triggers)))
        is_told = bool(beats) and len(line) >= _FEWEST
        uncovered.append(float(np.median(beats)) / step - len(line) if is_told else 0.0)
    return bool(uncovered) and float(np.median(uncovered)) > _UNCOVERED


def _declared(image: Image, sequence: str) -> int:
    """Return how many phases of a slice a header tells; 0: it does not."""
    phases = image.phases_declared if sequence == "cine" else None
    return max(phases or 0, image.temporals_declared or 0)


def _counts(lines: Sequence[Line], sequence: str) -> tuple[list[Counts], list[Counts]]:
    """Return what counts the phases of every slice, and what tells their times alone.

    Phases of a cine are even in time, so times count them. Beats are not, and a scanner may miss one.
    """
    trigger, temporal, clock, number = (
        _rising(lines, key)
        for key in (
            lambda image: image.trigger,
            lambda image: image.temporal,
            lambda image: image.clock,
            lambda image: image.instance_number,
        )
    )
    is_fine = any(value != int(value) for line in clock for value in line)  # not of whole seconds
    times = [trigger] if sequence == "cine" else [clock] if is_fine else [trigger]
    timed = [Counts(values, comparable=True) for values in times if values]
    counted = [Counts(values, comparable=True) for values in (temporal,) if values]
    numbered = [Counts(number, comparable=False)] if number and not counted and not timed else []
    return ([*timed, *counted, *numbered], []) if sequence == "cine" else ([*counted, *numbered], timed)


def _gaps(lines: Sequence[Line], counts: Sequence[Counts], sequence: str) -> list[Gaps]:
    """Return the phases that each slice lacks, by what counts them."""
    gaps: list[Gaps] = [{} for _ in lines]
    if min(map(len, lines)) < _FEWEST:
        return gaps
    for each in counts:
        first = min(line[0] for line in each.values) if each.comparable else None
        for in_slice, line in zip(gaps, each.values, strict=True):
            for rank, count in _gaps_of(line, first, _LATE.get(sequence, _LATE_BEAT)).items():
                in_slice[rank] = max(count, in_slice.get(rank, 0))
    return gaps


def _gaps_of(line: Sequence[float], first: float | None, latest: float) -> Gaps:
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


def _every_so_many(stack: Stack) -> bool:
    """Return whether slices lie a multiple of the distance apart that the header declares."""
    apart = abs(stack.first.apart or 0.0)
    if stack.n_slices < 2 or apart < max(0.9 * (stack.first.thickness or 0.0), 1.0):
        return False
    return stack.step > _WIDE * apart and are_multiples([stack.step], apart)


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
