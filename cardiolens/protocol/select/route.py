"""Routes from a subtask to the volumes of a study that serve to answer it."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.study.anatomy import Anatomy
from cardiolens.study.structure import VolumeStructure

Volumes = tuple[VolumeStructure, ...]


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
    def of(cls, subtask: Subtask) -> "Route":
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
    """Merge sources that a pool replaces, such as both kinds of LGE: its cascade splits the quota."""
    names = {source.name for source in sources}
    for name, pool in anatomy.pools.items():
        if pool.replaces and set(pool.replaces) == names:
            weight = sum(source.weight for source in sources)
            return (Source(name, weight, tuple(volume for source in sources for volume in source.volumes)),)
    return tuple(sources)
