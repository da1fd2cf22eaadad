"""Detection of text burnt into pixels: a row of glyphs of equal height and brightness in every frame.

The detector looks at the darkest and the brightest value of each pixel over a stack: anatomy moves from
slice to slice and from phase to phase, noise from frame to frame; text stays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_STROKES = (5, 9)  # pixels: strokes are thinner
_CONTRASTS = (0.2, 0.3, 0.45, 0.6, 0.8)  # of ink against its surroundings / spread of intensities
_FEWEST, _FEWEST_IN_ONE = 4, 6  # glyphs of a row; in a single frame, where nothing shows what stays
_SMALLEST = 5  # least height of a glyph, pixels
_TALLEST_SHARE = 5  # largest height of a glyph: frame height / 5, at least ten pixels
_WIDEST = 2.2  # width / height of a glyph: two letters may touch
_GAP = 1.2  # gap to the next glyph / height
_SAME_FOOT = 0.2  # difference of baselines / height
_SAME_HEIGHT = 0.6  # ratio of heights
_SAME_INK = 0.08  # median deviation of the glyphs' inks / contrast
_STILL = 0.5  # median change of the glyphs' inks from frame to frame / contrast
_FEWEST_PHASES = 5  # of a slice that is searched by itself
_BUSY = 0.35  # share of raised pixels from which a plane holds no lines of text

Plane = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Glyph:
    """A connected spot that may be a letter or a digit."""

    left: int
    right: int
    foot: int
    height: int
    ink: float
    contrast: float
    change: float  # of the ink, from frame to frame


def shows_text(slices: Sequence[NDArray[Any]]) -> bool:
    """Return whether all frames of a stack, or all phases of one slice, show the same row of text.

    Each slice has shape (phase, row, column).
    """
    stack = np.concatenate(slices)
    several = len(slices) > 1 and len(slices[0]) >= _FEWEST_PHASES
    return _shows_row(stack) or (several and any(map(_shows_row, slices)))


def _shows_row(frames: NDArray[Any]) -> bool:
    """Return whether all frames (frame, row, column) show the same row of bright or dark text."""
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
    """Yield spots with the size and proportions of a letter, from left to right."""
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
    """Yield the row of glyphs that begins at each glyph."""
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
    """Return whether the glyphs of a row have the same brightness in all frames."""
    inks = np.array([glyph.ink for glyph in row])
    differ, change = np.median(np.abs(inks - np.median(inks))), np.median([glyph.change for glyph in row])
    contrast = np.median([glyph.contrast for glyph in row])
    return bool(differ <= _SAME_INK * contrast and change <= _STILL * contrast)
