"""The clinical selector: quotas by view, one cascade per view, then fallback to other views (protocol 5)."""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial

from cardiolens.protocol.select import cine, lge, perfusion, static
from cardiolens.protocol.select.quota import settle, split
from cardiolens.protocol.select.route import Routed, Source, Volumes
from cardiolens.protocol.select.routing_rules import rules
from cardiolens.protocol.select.selection import Frame
from cardiolens.study.structure import VolumeStructure

Cascade = Callable[[Volumes, int], list[Frame]]


def _single(cascade: Callable[[VolumeStructure, int], list[Frame]]) -> Cascade:
    return lambda volumes, quota: cascade(volumes[0], quota)


def _cascades(small_k: cine.SmallK) -> Mapping[str, Cascade]:
    long_axis = _single(partial(cine.long_axis, small_k=small_k))
    return {
        "cine_sax": _single(cine.short_axis),
        "cine_4ch": long_axis,
        "cine_3ch": long_axis,
        "cine_2ch": long_axis,
        "lge": lge.short_and_long,
        "lge_sax": lge.short_axis,
        "lge_lax": lge.long_axes,
        "perf_sax": _single(perfusion.first_pass),
        "t2": static.pooled,
        "t2_sax": _single(static.slices),
        "t2_4ch": _single(static.slices),
    }


_CASCADES: Mapping[cine.SmallK, Mapping[str, Cascade]] = {
    "temporal": _cascades("temporal"),
    "spatial": _cascades("spatial"),
}


def extract(sources: tuple[Source, ...], volumes: Volumes, budget: int, small_k: cine.SmallK) -> list[Frame]:
    """Frames of the routed sources; of the volumes that they fall back to once those are used up."""
    capacities = [source.n_frames for source in sources]
    quotas = settle(split(budget, [source.weight for source in sources]), capacities)
    cascades = _CASCADES[small_k]
    chosen = [
        frame
        for source, quota in zip(sources, quotas, strict=True)
        for frame in cascades[source.name](source.volumes, quota)
    ]
    if len(chosen) < budget:
        for volume in fallbacks(sources, volumes):
            chosen += cine.fallback(volume, budget - len(chosen))
    return chosen


def quotas(sources: tuple[Source, ...], volumes: Volumes, budget: int) -> Mapping[str, int]:
    """Number of frames that each volume gives at a budget, by its id; the rule for small K moves none."""
    return Counter(frame.volume_id for frame in extract(sources, volumes, budget, "temporal"))


def fallbacks(sources: tuple[Source, ...], volumes: Volumes) -> Volumes:
    """Volumes that the sources fall back to, in order; sources themselves are used up by then."""
    names = [view for source in sources for view in rules().fallback.get(source.name, ())]
    if not names:
        return ()
    routed = {volume.volume_id for source in sources for volume in source.volumes}
    by_id = {volume.volume_id: volume for volume in volumes if volume.volume_id not in routed}
    return tuple(by_id.pop(view) for view in names if view in by_id)


def unknown_levels(routed: Routed) -> bool:
    """Return whether a cascade would rely on base and apex in a stack of unknown order."""
    return any(not v.levels_known and v.volume_id in rules().levels for v in routed.volumes)
