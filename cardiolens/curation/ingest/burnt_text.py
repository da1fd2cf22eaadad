"""Text burnt into pixels, told by its shape: glyphs of one height and one ink, in a row that stands still.

What all frames of a stack share is looked at, the darkest and the brightest value of each pixel: anatomy
moves from slice to slice and from phase to phase, noise from frame to frame, and text stays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_STROKES = (5, 9)  # pixels: strokes are thinner
_CONTRASTS = (0.2, 0.3, 0.45, 0.6, 0.8)  # of ink with its surroundings, by the spread of intensities
_FEWEST, _FEWEST_IN_ONE = 4, 6  # glyphs of a row; where a single frame cannot tell what stands still
_SMALLEST = 5  # pixels of a glyph's height
_TALLEST_SHARE = 5  # of these a picture is high, or ten pixels
_WIDEST = 2.2  # of its height: two letters may touch
_GAP = 1.2  # of its height, to the next glyph of the row
_SAME_FOOT = 0.2  # of its height
_SAME_HEIGHT = 0.6  # of the other's height
_SAME_INK = 0.08  # of the contrast, by which half of the glyphs' inks may differ
_STILL = 0.5  # of the contrast, by which half of the glyphs' inks may change from frame to frame
_FEWEST_PHASES = 5  # of a slice that is looked at by itself
_BUSY = 0.35  # of a picture: where so much stands out there are no lines of text

Plane = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Glyph:
    """A spot that may be a letter or a digit."""

    left: int
    right: int
    foot: int
    height: int
    ink: float
    contrast: float
    change: float  # of its ink, from frame to frame


def shows_text(slices: Sequence[NDArray[Any]]) -> bool:
    """Whether a row of text stands in all frames of a stack, or in all phases of one of its slices.

    Each slice is (phase, row, column).
    """
    stack = np.concatenate(slices)
    several = len(slices) > 1 and len(slices[0]) >= _FEWEST_PHASES
    return _stands_in(stack) or (several and any(map(_stands_in, slices)))


def _stands_in(frames: NDArray[Any]) -> bool:
    """Whether a row of text stands in every one of the frames (frame, row, column), bright or dark."""
    low, high = np.percentile(frames, [1, 99])
    if high <= low:
        return False
    darkest, brightest = (plane.astype(np.float64) for plane in (frames.min(axis=0), frames.max(axis=0)))
    changes, spread = brightest - darkest, float(high - low)
    fewest = _FEWEST_IN_ONE if len(frames) == 1 else _FEWEST
    return any(_has_row(plane, changes, spread, fewest) for plane in (darkest, -brightest))


def _has_row(plane: Plane, changes: Plane, spread: float, fewest: int) -> bool:
    for size in _STROKES:
        raised = plane - ndimage.grey_opening(plane, size=(size, size))
        for share in _CONTRASTS:
            inked = raised > share * spread
            if inked.mean() >= _BUSY:
                continue
            glyphs = list(_glyphs(plane, raised, changes, inked))
            if any(len(row) >= fewest and _one_ink(row) for row in _rows(glyphs)):
                return True
    return False


def _glyphs(plane: Plane, raised: Plane, changes: Plane, inked: NDArray[np.bool_]) -> Iterator[_Glyph]:
    """Yield the spots of a letter's size and proportions, from the left."""
    spots, count = ndimage.label(inked, np.ones((3, 3)))
    tallest = max(plane.shape[0] // _TALLEST_SHARE, 2 * _SMALLEST)
    each = range(1, count + 1)
    places = ndimage.maximum_position(plane, spots, each)
    contrasts = ndimage.maximum(raised, spots, each)
    boxes = sorted(enumerate(ndimage.find_objects(spots)), key=lambda box: box[1][1].start)
    for number, (rows, columns) in boxes:
        height, width = rows.stop - rows.start, columns.stop - columns.start
        if _SMALLEST <= height <= tallest and width <= _WIDEST * height:
            place = tuple(places[number])
            yield _Glyph(
                left=columns.start,
                right=columns.stop,
                foot=rows.stop,
                height=height,
                ink=float(plane[place]),
                contrast=float(contrasts[number]),
                change=float(changes[place]),
            )


def _rows(glyphs: Sequence[_Glyph]) -> Iterator[list[_Glyph]]:
    """Yield the row that begins at each glyph."""
    for start, first in enumerate(glyphs):
        row = [first]
        for glyph in glyphs[start + 1 :]:
            if glyph.left - row[-1].right > _GAP * first.height:
                break
            alike = _SAME_HEIGHT <= glyph.height / first.height <= 1 / _SAME_HEIGHT
            level = abs(glyph.foot - first.foot) <= max(1, _SAME_FOOT * first.height)
            if alike and level and glyph.left >= row[-1].right - 1:
                row.append(glyph)
        yield row


def _one_ink(row: Sequence[_Glyph]) -> bool:
    """Whether the glyphs of a row are as bright as each other, in all frames."""
    inks = np.array([glyph.ink for glyph in row])
    differ, change = np.median(np.abs(inks - np.median(inks))), np.median([glyph.change for glyph in row])
    contrast = np.median([glyph.contrast for glyph in row])
    return bool(differ <= _SAME_INK * contrast and change <= _STILL * contrast)
