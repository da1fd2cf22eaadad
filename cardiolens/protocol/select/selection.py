"""What selectors get and return: the routes of a subtask in a study, and selections of frames with flags."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.structure import VolumeStructure

Volumes = tuple[VolumeStructure, ...]  # of one study


def n_frames(volumes: Volumes) -> int:
    """Return the number of frames of volumes together."""
    return sum(volume.n_frames for volume in volumes)


@dataclass(frozen=True, slots=True)
class Source:
    """The volumes of a study for one name of a route."""

    name: str
    weight: int
    volumes: Volumes


@dataclass(frozen=True, slots=True)
class Routed:
    """A route resolved in one study."""

    sources: tuple[Source, ...] = ()
    flags: tuple[str, ...] = ()
    skipped: str | None = None

    @property
    def volumes(self) -> Volumes:
        """The volumes of the sources, in the order shown."""
        return tuple(volume for source in self.sources for volume in source.volumes)


@lru_cache(maxsize=256)
def resolve(volumes: Volumes, subtask: Subtask) -> Routed:
    """Resolve the route of a subtask in a study: its sources, else substitutes, else the reason to skip."""
    if not volumes:
        return Routed(skipped="sequence_missing")
    by_id, anatomy = {volume.volume_id: volume for volume in volumes}, volumes[0].anatomy
    every = [_source(name, weight, by_id, anatomy) for name, weight in subtask.route]
    sources = [source for source in every if source.volumes]
    if sources:
        return Routed(_pooled(sources, anatomy), () if len(sources) == len(subtask.route) else ("degraded",))
    substitutes = [] if subtask.only_routed else _substitutes(subtask, by_id, anatomy)
    if substitutes:
        remarks = tuple(f"substituted:{source.name}" for source in substitutes)
        return Routed(tuple(substitutes), ("degraded", *remarks))
    present = any(volume.sequence == subtask.sequence for volume in volumes)
    return Routed(skipped="view_missing" if present else "sequence_missing")


def _source(name: str, weight: int, by_id: Mapping[str, VolumeStructure], anatomy: Anatomy) -> Source:
    members = (by_id.get(view) for view in anatomy.members(name))
    return Source(name, weight, tuple(volume for volume in members if volume is not None))


def _substitutes(subtask: Subtask, by_id: Mapping[str, VolumeStructure], anatomy: Anatomy) -> list[Source]:
    substitutes: dict[str, Source] = {}
    readable = subtask.unreadable_without
    for name, weight in subtask.route:
        for substitute in anatomy.substitutes.get(name, ()):
            source = _source(substitute, weight, by_id, anatomy)
            if source.volumes and (not readable or substitute in readable):
                substitutes.setdefault(substitute, source)
                break
    return list(substitutes.values())


def _pooled(sources: list[Source], anatomy: Anatomy) -> tuple[Source, ...]:
    """Merge sources that a pool replaces, such as both kinds of LGE: its cascade splits the quota."""
    names = {source.name for source in sources}
    for name, pool in anatomy.pools.items():
        if pool.replaces and set(pool.replaces) == names:
            weight = sum(source.weight for source in sources)
            return (Source(name, weight, tuple(volume for source in sources for volume in source.volumes)),)
    return tuple(sources)


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
