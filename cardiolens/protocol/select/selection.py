"""Selections: the frames that selectors return, in the order shown, with flags."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from cardiolens.study.structure import VolumeStructure


class Frame(NamedTuple):
    """One frame of a study in canonical ranks, and the step of the rule that chose it, from 1."""

    volume_id: str
    idx: int
    slice: int
    phase: int
    step: int = 1


@dataclass(frozen=True, slots=True)
class Selection:
    """Frames in the order shown; `skipped` is the reason why there are none."""

    frames: tuple[Frame, ...]
    # short, degraded, substituted:<view shown instead>, no_temporal_evidence, ...
    flags: tuple[str, ...] = ()
    skipped: str | None = None


def pick(volume: VolumeStructure, slice_rank: int, phase: int, step: int = 1) -> Frame:
    """Return the frame at a slice and phase of a volume."""
    return Frame(volume.volume_id, slice_rank * volume.n_phases + phase, slice_rank, phase, step)


def pick_idx(volume: VolumeStructure, idx: int) -> Frame:
    """Return the frame at a canonical index of a volume."""
    return Frame(volume.volume_id, idx, *divmod(idx, volume.n_phases))


def pick_all(volume: VolumeStructure, indices: Iterable[int]) -> list[Frame]:
    """Return frames at canonical indices of a volume."""
    return [pick_idx(volume, idx) for idx in indices]


def center_out(n: int) -> list[int]:
    """Return the ranks 0..n-1 from the middle outwards: n//2, then one below, one above, two below, ..."""
    return sorted(range(n), key=lambda rank: (abs(rank - n // 2), rank))


def deal(count: int, hands: int) -> list[int]:
    """Return the size of each hand when `count` cards are dealt round-robin."""
    return [count // hands + (hand < count % hands) for hand in range(hands)]
