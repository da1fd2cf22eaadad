"""Routes from a subtask to the volumes of a study that serve to answer it (protocol 5.6)."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Protocol

from cardiolens.study.anatomy import Anatomy
from cardiolens.study.structure import VolumeStructure

SCHEMA = "selection-1"
_SUBSTITUTED = "substituted:"


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

    @property
    def sha256(self) -> str:
        """SHA-256 of UTF-8 lines `volume|idx` joined by a newline, in order (protocol 5.11)."""
        lines = "\n".join(f"{frame.volume_id}|{frame.idx}" for frame in self.frames)
        return hashlib.sha256(lines.encode()).hexdigest()


def pick(volume: VolumeStructure, slice_rank: int, phase: int, step: int = 1) -> Frame:
    """Return the frame at a slice and phase of a volume."""
    return Frame(volume.volume_id, slice_rank * volume.n_phases + phase, slice_rank, phase, step)


def pick_idx(volume: VolumeStructure, idx: int) -> Frame:
    """Return the frame at a canonical index of a volume."""
    return Frame(volume.volume_id, idx, *divmod(idx, volume.n_phases))


def pick_all(volume: VolumeStructure, indices: Iterable[int]) -> list[Frame]:
    """Return frames at canonical indices of a volume."""
    return [pick_idx(volume, idx) for idx in indices]


def record(
    selection: Selection, *, study_id: str, subtask: str, selector: str, budget: int, seed: int | None
) -> dict[str, object]:
    """Return a `selection-1` record (protocol 5.11), with the reason if skipped."""
    flags = selection.flags
    fields = {
        "schema": SCHEMA,
        "study_id": study_id,
        "subtask": subtask,
        "selector": selector,
        "K": budget,
        "seed": seed,
        "frames": [
            {"volume": f.volume_id, "idx": f.idx, "slice": f.slice, "phase": f.phase, "step": f.step}
            for f in selection.frames
        ],
        "short": "short" in flags,
        "degraded": "degraded" in flags,
        "substituted": [flag.removeprefix(_SUBSTITUTED) for flag in flags if flag.startswith(_SUBSTITUTED)],
        "no_temporal_evidence": "no_temporal_evidence" in flags,
        "sha256": selection.sha256,
    }
    return fields if selection.skipped is None else {**fields, "skipped": selection.skipped}


def even(n: int, m: int) -> list[int]:
    """Return `m` evenly spread, distinct ranks of 0..n-1; all if m >= n."""
    if m >= n:
        return list(range(n))
    return [((2 * i + 1) * n) // (2 * m) for i in range(m)]


def center_out(n: int) -> list[int]:
    """Return the ranks 0..n-1 from the middle outwards: n//2, then one below, one above, two below, ..."""
    return sorted(range(n), key=lambda rank: (abs(rank - n // 2), rank))


def deal(count: int, hands: int) -> list[int]:
    """Return the size of each hand when `count` cards are dealt round-robin."""
    return [count // hands + (hand < count % hands) for hand in range(hands)]


Volumes = tuple[VolumeStructure, ...]


class Routable(Protocol):
    """Attributes of a subtask that routing needs."""

    @property
    def id(self) -> str: ...
    @property
    def sequence(self) -> str: ...
    @property
    def route(self) -> tuple[tuple[str, int], ...]: ...
    @property
    def temporal(self) -> bool: ...
    @property
    def unreadable_without(self) -> tuple[str, ...]: ...
    @property
    def only_routed(self) -> bool: ...


@dataclass(frozen=True, slots=True)
class Route:
    """The views of a subtask with their weights, in priority order."""

    subtask: str
    sequence: str
    views: tuple[tuple[str, int], ...]
    temporal: bool = False  # about motion, function or valves: needs two phases of one layer
    readable_on: tuple[str, ...] = ()  # legal substitutes; empty: any
    only_routed: bool = False  # no substitutes and no fallback

    @classmethod
    def of(cls, subtask: Routable) -> "Route":
        """Build the route of a subtask."""
        return cls(
            subtask.id,
            subtask.sequence,
            subtask.route,
            subtask.temporal,
            subtask.unreadable_without,
            subtask.only_routed,
        )


@dataclass(frozen=True, slots=True)
class Source:
    """The volumes of a study for one name of a route."""

    name: str
    weight: int
    volumes: Volumes

    @property
    def n_frames(self) -> int:
        return sum(volume.n_frames for volume in self.volumes)


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
def resolve(volumes: Volumes, route: Route) -> Routed:
    """Resolve a route in a study: its sources, else substitutes, else the reason to skip."""
    if not volumes:
        return Routed(skipped="sequence_missing")
    by_id, anatomy = {volume.volume_id: volume for volume in volumes}, volumes[0].anatomy
    every = [_source(name, weight, by_id, anatomy) for name, weight in route.views]
    sources = [source for source in every if source.volumes]
    if sources:
        return Routed(_pooled(sources, anatomy), () if len(sources) == len(route.views) else ("degraded",))
    substitutes = [] if route.only_routed else _substitutes(route, by_id, anatomy)
    if substitutes:
        remarks = tuple(f"substituted:{source.name}" for source in substitutes)
        return Routed(tuple(substitutes), ("degraded", *remarks))
    present = any(volume.sequence == route.sequence for volume in volumes)
    return Routed(skipped="view_missing" if present else "sequence_missing")


def _source(name: str, weight: int, by_id: Mapping[str, VolumeStructure], anatomy: Anatomy) -> Source:
    members = (by_id.get(view) for view in anatomy.members(name))
    return Source(name, weight, tuple(volume for volume in members if volume is not None))


def _substitutes(route: Route, by_id: Mapping[str, VolumeStructure], anatomy: Anatomy) -> list[Source]:
    substitutes: dict[str, Source] = {}
    for name, weight in route.views:
        for substitute in anatomy.substitutes.get(name, ()):
            source = _source(substitute, weight, by_id, anatomy)
            if source.volumes and (not route.readable_on or substitute in route.readable_on):
                substitutes.setdefault(substitute, source)
                break
    return list(substitutes.values())


def _pooled(sources: list[Source], anatomy: Anatomy) -> tuple[Source, ...]:
    """Merge sources that a pool replaces, such as both kinds of LGE: its cascade splits the quota (5.7)."""
    names = {source.name for source in sources}
    for name, pool in anatomy.pools.items():
        if pool.replaces and set(pool.replaces) == names:
            weight = sum(source.weight for source in sources)
            return (Source(name, weight, tuple(volume for source in sources for volume in source.volumes)),)
    return tuple(sources)
