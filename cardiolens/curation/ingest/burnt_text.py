"""Detection of text burnt into pixels: a row of glyphs of equal height and brightness in every frame.

The detector looks at the darkest and the brightest value of each pixel over a stack: anatomy moves from
slice to slice and from phase to phase, noise from frame to frame; text stays. A file may store a picture
turned or mirrored, so rows are looked for along all four sides of the picture and in both directions of
reading: the verdict is the same for all eight ways to store the same frames.
"""

from collections.abc import Iterator, Sequence
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
# Connected spots that may be letters or digits, one a row: rows (first, end), columns (first, end), ink,
# contrast, change of the ink from frame to frame, and strokes: how often a horizontal line crosses the spot
# plus how often a vertical one does, on average.
Spots = NDArray[np.float64]
_INK, _CONTRAST, _CHANGE, _CROSSED = 4, 5, 6, 7


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
            if inked.mean() < _BUSY:
                rows = _rows(_spots(plane, raised, changes, inked), plane.shape)
                if any(len(row) >= fewest and _is_text(row, alone=alone) for row in rows):
                    return True
    return False


def _spots(plane: Plane, raised: Plane, changes: Plane, inked: NDArray[np.bool_]) -> Spots:
    labels, count = ndimage.label(inked, np.ones((3, 3)))
    each = range(1, count + 1)
    inks, contrasts = ndimage.maximum(plane, labels, each), ndimage.maximum(raised, labels, each)
    at_peak = plane >= np.append(np.inf, inks)[labels]  # as bright as its spot becomes
    change = ndimage.maximum(np.where(at_peak, changes, 0.0), labels, each)
    edges = np.array([[side.start, side.stop] for spot in ndimage.find_objects(labels) for side in spot])
    edges = edges.reshape(count, 4).astype(np.float64)
    strokes = np.zeros(count)
    for axis, (first, last) in ((1, (0, 1)), (0, (2, 3))):
        begins = inked & ~np.roll(np.pad(inked, 1), 1, axis)[1:-1, 1:-1]
        strokes += np.bincount(labels[begins], minlength=count + 1)[1:] / (edges[:, last] - edges[:, first])
    return np.column_stack([edges, inks, contrasts, change, strokes])


def _rows(spots: Spots, shape: tuple[int, ...]) -> Iterator[Spots]:
    """Yield the row of glyphs that begins at each glyph, for each of the eight ways to store a picture."""
    for turned, is_backward, is_upside_down in product((False, True), repeat=3):
        tallest = max(shape[1 if turned else 0] // _TALLEST_SHARE, 2 * _SMALLEST)
        low, high, left, right = spots[:, [2, 3, 0, 1] if turned else [0, 1, 2, 3]].T
        left, right = (-right, -left) if is_backward else (left, right)
        places = np.column_stack([left, right, -low if is_upside_down else high, high - low])
        height = high - low
        is_glyph = (height >= _SMALLEST) & (height <= tallest) & (right - left <= _WIDEST * height)
        listed = places.tolist()
        order = [number for number in np.lexsort(places.T[::-1]).tolist() if is_glyph[number]]
        for start in range(len(order)):
            yield spots[_row(listed, order[start:])]


def _row(places: Sequence[Sequence[float]], order: Sequence[int]) -> list[int]:
    """Return the glyphs of a row from the first one on; `places`: left, right, foot and height of each."""
    row = [order[0]]
    _, _, first_foot, first_height = places[order[0]]
    for number in order[1:]:
        left, _, foot, height = places[number]
        gap = left - places[row[-1]][1]
        if gap > _GAP * first_height:
            break
        alike = _SAME_HEIGHT <= height / first_height <= 1 / _SAME_HEIGHT
        if alike and abs(foot - first_foot) <= max(1, _SAME_FOOT * first_height) and gap >= -1:
            row.append(number)
    return row


def _is_text(row: Spots, *, alone: bool) -> bool:
    """Return whether the glyphs of a row have letters' strokes and the same brightness in all frames."""
    inks, contrast = row[:, _INK], np.median(row[:, _CONTRAST])
    least = _LEAST_IN_LONG if len(row) >= _LONG and not alone else _LEAST_STROKES
    return bool(
        np.median(np.abs(inks - np.median(inks))) <= (_SAME_INK_IN_ONE if alone else _SAME_INK) * contrast
        and np.median(row[:, _CHANGE]) <= _STILL * contrast
        and row[:, _CROSSED].sum() >= least * len(row)
    )
