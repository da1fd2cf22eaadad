"""Layout of a volume's third axis: stored frame index <-> (slice, phase) (protocol 1.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError

Order = Literal["slice_major", "phase_major", "static"]

_SMALL_SIDE = 64  # pixels; frames are compared at this size


@dataclass(frozen=True, slots=True)
class Layout:
    """The grid of slices and phases that the stored frames of a volume fill."""

    n_slices: int
    n_phases: int
    phase_major: bool = False  # whether all slices of a phase stand together, as in a file of four axes

    @property
    def n_frames(self) -> int:
        return self.n_slices * self.n_phases

    def canonical_order(self, *, apex_first: bool) -> tuple[int, ...]:
        """Return the stored frame at each canonical index rank * n_phases + phase; rank 0 is most basal."""
        slices = range(self.n_slices)
        of_slice, of_phase = (1, self.n_slices) if self.phase_major else (self.n_phases, 1)
        ranked = reversed(slices) if apex_first else slices
        return tuple(s * of_slice + p * of_phase for s in ranked for p in range(self.n_phases))


def even(n: int, m: int) -> tuple[int, ...]:
    """Return m of n indices, evenly spread, in integer arithmetic (protocol 5.2)."""
    if m >= n:
        return tuple(range(n))
    return tuple(((2 * i + 1) * n) // (2 * m) for i in range(m))


def resolve(shape: Sequence[int], order: Order, n_slices: int | None, n_phases: int | None) -> Layout:
    """Return the declared layout of a stored shape of 3 or 4 axes.

    In a true 4D shape axis 2 is the slice and axis 3 the phase, whatever `order` says. InputError if
    declaration and shape disagree, or if nothing declares the number of phases.
    """
    n_frames = int(np.prod(shape[2:], dtype=object))
    if len(shape) == 4:
        grid = shape[2], shape[3]
    elif order == "static":
        grid = n_frames, 1
    elif n_slices is None and n_phases is None:
        raise InputError(
            f"layout_unresolved: nothing says how many of its {n_frames} frames are phases; expected "
            "layout.n_slices and layout.n_phases; declare them in study.json"
        )
    else:
        grid = n_slices or n_frames // (n_phases or 1), n_phases or n_frames // (n_slices or 1)
    size = grid[0] if n_slices is None else n_slices, grid[1] if n_phases is None else n_phases
    if grid[0] * grid[1] != n_frames or size != grid:
        raise InputError(
            f"layout_mismatch: the volume holds {n_frames} frames; expected n_slices x n_phases = "
            f"{size[0]} x {size[1]} frames; correct layout or re-export the volume"
        )
    return Layout(*grid, phase_major=len(shape) == 4 or order == "phase_major")


def small(frame: NDArray[np.generic]) -> NDArray[np.float64]:
    """Reduce a frame to means over square blocks, at most 64 x 64; incomplete blocks are dropped."""
    block = -(-max(frame.shape) // _SMALL_SIDE)
    rows, columns = frame.shape[0] // block or 1, frame.shape[1] // block or 1
    cropped = frame[: rows * block, : columns * block].astype(np.float64)
    means: NDArray[np.float64] = cropped.reshape(
        rows, cropped.shape[0] // rows, columns, cropped.shape[1] // columns
    ).mean(axis=(1, 3))
    return means
