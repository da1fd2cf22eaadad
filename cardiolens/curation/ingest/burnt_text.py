"""Detection of text burnt into pixels: a row of glyphs of equal height and brightness in every frame.

The detector looks at the darkest and the brightest value of each pixel over a stack: anatomy moves from
slice to slice and from phase to phase, noise from frame to frame; text stays. A file may store a picture
turned or mirrored, so rows are looked for along all four sides of the picture and in both directions of
reading: the verdict is the same for all eight ways to store the same frames.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import ndimage

_STROKES = (5, 9)  # pixels: strokes are thinner
_CONTRASTS = (0.2, 0.3, 0.45, 0.6, 0.8)  # of ink against its surroundings / spread of intensities
_FEWEST, _FEWEST_IN_ONE = 4, 6  # glyphs of a row; in a single frame, where nothing shows what stays
_SMALLEST = 5  # least height of a glyph, pixels
_TALLEST_SHARE = 4  # largest height of a glyph: frame height / 4, at least ten pixels
_WIDEST = 2.2  # width / height of a glyph: two letters may touch
_GAP = 1.2  # gap to the next glyph / height
_SAME_FOOT = 0.2  # difference of baselines / height
_SAME_HEIGHT = 0.6  # ratio of heights
_SAME_INK, _SAME_INK_IN_ONE = 0.06, 0.03  # median deviation of the glyphs' inks / contrast; in a single frame
_STILL = 0.1  # median change of the glyphs' inks from frame to frame / contrast
_LEAST_STROKES = 2.9  # mean strokes of a row's glyphs: dots and bars have 2, letters and digits 3 to 4
_LONG, _LEAST_IN_LONG = 6, 2.4  # the same in a row of so many: letters of few pixels lose strokes
_FEWEST_PHASES = 5  # of a slice that is searched by itself
_BUSY = 0.35  # share of raised pixels from which a plane holds no lines of text

Plane = NDArray[np.float64]
Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class _Spot:
    """A connected spot that may be a letter or a digit."""

    down: Span  # rows
    across: Span  # columns
    ink: float
    contrast: float
    change: float  # of the ink, from frame to frame
    strokes: float  # crossed by a horizontal line plus crossed by a vertical line, on average


@dataclass(frozen=True, slots=True)
class _Glyph:
    """A spot as it stands in a line of text: the line runs to the right, its foot is below."""

    left: int
    right: int
    foot: int
    height: int
    spot: _Spot


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
    alone = len(frames) == 1
    return any(_has_row(plane, changes, spread, alone=alone) for plane in (darkest, -brightest))


def _has_row(plane: Plane, changes: Plane, spread: float, *, alone: bool) -> bool:
    fewest = _FEWEST_IN_ONE if alone else _FEWEST
    for size in _STROKES:
        raised = plane - ndimage.grey_opening(plane, size=(size, size))
        for share in _CONTRASTS:
            inked = raised > share * spread
            if inked.mean() >= _BUSY:
                continue
            spots = _spots(plane, raised, changes, inked)
            for line in _lines(spots, plane.shape):
                if any(len(row) >= fewest and _is_text(row, alone=alone) for row in _rows(line)):
                    return True
    return False


def _spots(plane: Plane, raised: Plane, changes: Plane, inked: NDArray[np.bool_]) -> list[_Spot]:
    labels, count = ndimage.label(inked, np.ones((3, 3)))
    each = range(1, count + 1)
    inks, contrasts = ndimage.maximum(plane, labels, each), ndimage.maximum(raised, labels, each)
    change = ndimage.maximum(np.where(_at_peak(plane, labels, inks), changes, 0.0), labels, each)
    before = np.zeros_like(inked)
    before[:, 1:] = inked[:, :-1]
    crossed_by_rows = np.bincount(labels[inked & ~before], minlength=count + 1)[1:]
    before = np.zeros_like(inked)
    before[1:] = inked[:-1]
    crossed_by_columns = np.bincount(labels[inked & ~before], minlength=count + 1)[1:]
    spots = []
    for number, (rows, columns) in enumerate(ndimage.find_objects(labels)):
        down, across = (rows.start, rows.stop), (columns.start, columns.stop)
        strokes = crossed_by_rows[number] / (down[1] - down[0])
        strokes += crossed_by_columns[number] / (across[1] - across[0])
        numbers = inks[number], contrasts[number], change[number], strokes
        spots.append(_Spot(down, across, *map(float, numbers)))
    return spots


def _at_peak(plane: Plane, labels: NDArray[np.int32], inks: Sequence[float]) -> NDArray[np.bool_]:
    """Return the pixels that are as bright as their spot becomes."""
    peaks: NDArray[np.bool_] = plane >= np.append(np.inf, inks)[labels]
    return peaks


def _lines(spots: Sequence[_Spot], shape: tuple[int, ...]) -> Iterator[list[_Glyph]]:
    """Yield the glyphs by place along a line of text, for each of the eight ways to store a picture."""
    for turned, backward, upside_down in product((False, True), repeat=3):
        tallest = max(shape[1 if turned else 0] // _TALLEST_SHARE, 2 * _SMALLEST)
        glyphs = []
        for spot in spots:
            along, up = (spot.down, spot.across) if turned else (spot.across, spot.down)
            height, width = up[1] - up[0], along[1] - along[0]
            if _SMALLEST <= height <= tallest and width <= _WIDEST * height:
                left, right = (-along[1], -along[0]) if backward else along
                glyphs.append(_Glyph(left, right, -up[0] if upside_down else up[1], height, spot))
        yield sorted(glyphs, key=lambda glyph: (glyph.left, glyph.right, glyph.foot, glyph.height))


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


def _is_text(row: Sequence[_Glyph], *, alone: bool) -> bool:
    """Return whether the glyphs of a row have letters' strokes and the same brightness in all frames."""
    spots = [glyph.spot for glyph in row]
    inks = np.array([spot.ink for spot in spots])
    differ, change = np.median(np.abs(inks - np.median(inks))), np.median([spot.change for spot in spots])
    contrast = np.median([spot.contrast for spot in spots])
    least = _LEAST_IN_LONG if len(spots) >= _LONG and not alone else _LEAST_STROKES
    return bool(
        differ <= (_SAME_INK_IN_ONE if alone else _SAME_INK) * contrast
        and change <= _STILL * contrast
        and sum(spot.strokes for spot in spots) >= least * len(spots)
    )
