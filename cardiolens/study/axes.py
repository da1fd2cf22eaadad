"""Detect swapped slice and phase axes: neighbouring phases differ less than neighbouring slices."""

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.study.layout import Layout

_SWAPPED = 1.5  # ratio of change along the phases to change along the slices: above, axes are swapped
_FEWEST_PHASES = 3
_FEWEST_SLICES = 8  # smaller stacks are not tested for being a cycle
_CLOSED = 2.0  # largest difference of last and first frame of a cycle, in mean steps
_TURNS = 3.0  # least difference of the first and the most unlike frame of a cycle, in mean steps

Frame = NDArray[np.float64]


def check_time(frames: list[Frame], layout: Layout, *, may_cycle: bool = True) -> None:
    """Refuse a grid whose phases look like slices or vice versa; `frames` are in canonical order.

    `may_cycle`: some sequence of the anatomy shows a cycle, which a stack might be by mistake.

    InputError gives the evidence: mean squared differences of neighbouring frames.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # extreme values, which windowing refuses later
        if layout.n_phases >= _FEWEST_PHASES and layout.n_slices > 1:
            _check_swapped(frames, layout)
        elif may_cycle and layout.n_phases == 1 and layout.n_slices >= _FEWEST_SLICES:
            _check_cycle(frames)


def _check_swapped(frames: list[Frame], layout: Layout) -> None:
    grid = np.array(frames).reshape(layout.n_slices, layout.n_phases, *frames[0].shape)
    pixels = (-2, -1)
    in_time = float(np.median(np.mean((grid[:, 1:] - grid[:, :-1]) ** 2, axis=pixels)))  # a bolus is brief
    across = float(np.median(np.mean((grid[1:] - grid[:-1]) ** 2, axis=pixels)))
    if in_time > _SWAPPED * across:
        raise InputError(
            f"time_looks_like_slices: neighbouring phases differ by {in_time:.4g} (mean square), "
            f"neighbouring slices by {across:.4g}; expected less change in time, so its {layout.n_slices} "
            f"slices seem to be phases and its {layout.n_phases} phases slices; re-export it with axes "
            '(i, j, slice, phase) or correct layout; or add "confirmed": ["layout"]'
        )


def _check_cycle(frames: list[Frame]) -> None:
    steps = float(np.mean([np.mean((after - before) ** 2) for before, after in pairwise(frames)]))
    closing = float(np.mean((frames[-1] - frames[0]) ** 2))
    furthest = max(float(np.mean((frame - frames[0]) ** 2)) for frame in frames)
    if closing < _CLOSED * steps and furthest > _TURNS * steps:
        raise InputError(
            f"slices_look_like_time: its last slice differs from its first by {closing:.4g} (mean square), "
            f"neighbours by {steps:.4g} and the most unlike one by {furthest:.4g}; expected a stack, not a "
            f"cycle, so its {len(frames)} slices seem to be phases; declare them in layout; or add "
            '"confirmed": ["layout"]'
        )
