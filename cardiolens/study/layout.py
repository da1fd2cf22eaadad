"""Layout of a volume's third axis: stored frame index <-> (slice, phase) (protocol 1.2)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError

Order = Literal["slice_major", "phase_major", "static", "explicit"]
Position = tuple[int, int]  # stored slice, phase

INFERRED_PHASES = range(5, 61)
INFERRED_RATIO = 2.0
INFERRED_RATIO_OF_CYCLES = 1.4
INFERRED_SIDE = 64  # pixels; frames are compared at this size


@dataclass(frozen=True, slots=True)
class Layout:
    """Position of each stored frame of a volume on the grid of slices and phases."""

    order: Order
    n_slices: int
    n_phases: int
    frames: tuple[Position, ...] = ()  # explicit order only: one position per stored frame

    @property
    def n_frames(self) -> int:
        return self.n_slices * self.n_phases

    def position(self, stored: int) -> Position:
        """Return slice and phase of a stored frame."""
        return _POSITIONS[self.order](self, stored)

    def canonical_order(self, *, apex_first: bool) -> tuple[int, ...]:
        """Return the stored frame at each canonical index rank * n_phases + phase; rank 0 is most basal."""
        stored = {self.position(k): k for k in range(self.n_frames)}
        slices = range(self.n_slices)
        ranked = reversed(slices) if apex_first else slices
        return tuple(stored[s, p] for s in ranked for p in range(self.n_phases))


_POSITIONS: dict[Order, Callable[[Layout, int], Position]] = {
    "slice_major": lambda layout, k: (k // layout.n_phases, k % layout.n_phases),
    "phase_major": lambda layout, k: (k % layout.n_slices, k // layout.n_slices),
    "static": lambda layout, k: (k, 0),
    "explicit": lambda layout, k: layout.frames[k],
}


def even(n: int, m: int) -> tuple[int, ...]:
    """Return m of n indices, evenly spread, in integer arithmetic (protocol 5.2)."""
    if m >= n:
        return tuple(range(n))
    return tuple(((2 * i + 1) * n) // (2 * m) for i in range(m))


def resolve(
    shape: Sequence[int],
    order: Order,
    n_slices: int | None,
    n_phases: int | None,
    frames: tuple[Position, ...],
) -> Layout | None:
    """Return the declared layout of a stored shape (3 or 4 axes); None if it must be inferred.

    In a true 4D shape axis 2 is the slice and axis 3 the phase, whatever `order` says. InputError if
    declaration and shape disagree.
    """
    n_frames = int(np.prod(shape[2:], dtype=object))
    if len(shape) == 4:
        if order == "explicit":
            raise InputError(
                f"layout_mismatch: layout.frames orders the third axis, but the shape {list(shape)} has a "
                "fourth one for the phases; remove layout.frames, or join both axes in the file"
            )
        order, frames, grid = "slice_major", (), (shape[2], shape[3])
    elif order == "explicit":
        grid = _explicit_grid(frames, n_frames)
    elif order == "static":
        grid = (n_frames, 1)
    elif n_slices is None and n_phases is None:
        return None
    else:
        grid = (n_slices or n_frames // (n_phases or 1), n_phases or n_frames // (n_slices or 1))
    _check_grid(grid, n_frames, (n_slices, n_phases))
    return Layout(order, *grid, frames if order == "explicit" else ())


def _explicit_grid(frames: tuple[Position, ...], n_frames: int) -> Position:
    """Return the grid that explicit positions fill; built from counts alone, as one index can be huge."""
    if len(frames) != n_frames:
        raise InputError(
            f"layout_mismatch: layout.frames holds {len(frames)} positions for Z = {n_frames}; {_EACH_ONCE}"
        )
    position, count = Counter(frames).most_common(1)[0]
    if count > 1:
        raise InputError(f"layout_mismatch: layout.frames holds {list(position)} {count} times; {_EACH_ONCE}")
    grid = max(s for s, _ in frames) + 1, max(p for _, p in frames) + 1
    if grid[0] * grid[1] != n_frames:  # distinct positions that leave some of the grid out
        raise InputError(
            f"layout_mismatch: layout.frames holds slices up to {grid[0] - 1} and phases up to "
            f"{grid[1] - 1}, which is more than Z = {n_frames}; {_EACH_ONCE}"
        )
    return grid


_EACH_ONCE = "expected each (slice, phase) of a full grid once, counted from 0; correct layout.frames"


def _check_grid(grid: Position, n_frames: int, declared: tuple[int | None, int | None]) -> None:
    size = tuple(grid[axis] if declared[axis] is None else declared[axis] for axis in (0, 1))
    if grid[0] * grid[1] == n_frames and size == grid:
        return
    raise InputError(
        f"layout_mismatch: the volume holds {n_frames} frames; expected n_slices x n_phases = "
        f"{size[0]} x {size[1]} frames; correct layout or re-export the volume"
    )


def small(frame: NDArray[np.generic]) -> NDArray[np.float64]:
    """Reduce a frame to means over square blocks, at most 64 x 64; incomplete blocks are dropped."""
    block = -(-max(frame.shape) // INFERRED_SIDE)
    rows, columns = frame.shape[0] // block or 1, frame.shape[1] // block or 1
    cropped = frame[: rows * block, : columns * block].astype(np.float64)
    means: NDArray[np.float64] = cropped.reshape(
        rows, cropped.shape[0] // rows, columns, cropped.shape[1] // columns
    ).mean(axis=(1, 3))
    return means


def infer_n_phases(frames: Sequence[NDArray[np.float64]], *, cyclic: bool) -> int:
    """Infer the number of phases: the period that best explains the jumps between frames (protocol 1.2).

    `frames` are the stored frames, each reduced by `small`. Intensities need no scaling: the decision is a
    ratio of mean squared differences. In a cycle the last frame of a slice is also close to the first, which
    excludes multiples and fractions of the period. InputError `layout_unresolved` if no period stands out.
    """
    z = len(frames)
    jumps = np.array([_difference(*pair) for pair in pairwise(frames)])
    candidates = [n for n in INFERRED_PHASES if z % n == 0 and z // n >= 2]
    closing = {n: _closing_jump(frames, n) if cyclic else 0.0 for n in candidates}
    ratios = {n: _jump_ratio(jumps, n, closing[n]) for n in candidates}
    best = max(ratios, key=lambda n: (ratios[n], -n), default=0)
    if ratios.get(best, 0.0) < (INFERRED_RATIO_OF_CYCLES if cyclic else INFERRED_RATIO):
        raise InputError(
            f"layout_unresolved: no number of phases in 5..60 stands out in its {z} frames; expected "
            "layout.n_slices and layout.n_phases; declare them in study.json"
        )
    return best


def _difference(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    return float(np.mean((second - first) ** 2))


def _closing_jump(frames: Sequence[NDArray[np.float64]], n_phases: int) -> float:
    """Return the mean squared difference of a slice's last and first frame, averaged over slices."""
    ends = zip(frames[n_phases - 1 :: n_phases], frames[::n_phases], strict=True)
    return float(np.mean([_difference(last, first) for last, first in ends]))


def _jump_ratio(jumps: NDArray[np.float64], n_phases: int, closing: float) -> float:
    """Return the mean jump between slices over the mean (or, if larger, the closing) jump within a slice."""
    at_boundary = np.arange(1, len(jumps) + 1) % n_phases == 0
    inside, between = max(float(jumps[~at_boundary].mean()), closing), float(jumps[at_boundary].mean())
    if between == 0:
        return 0.0
    return between / inside if inside > 0 else float("inf")
