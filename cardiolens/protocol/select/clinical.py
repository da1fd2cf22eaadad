"""The clinical selector: quotas by view, one cascade per view, then fallback to other views (protocol 5).

The cine cascades are in `cine`; those for LGE, perfusion and T2 are here.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from itertools import chain, zip_longest

from cardiolens.protocol.select import cine
from cardiolens.protocol.select.quota import settle, split
from cardiolens.protocol.select.route import Routed, Source, Volumes
from cardiolens.protocol.select.routing_rules import rules
from cardiolens.protocol.select.selection import Frame, pick, pick_all
from cardiolens.protocol.select.spread import center_out, deal, even
from cardiolens.study.structure import VolumeStructure

Cascade = Callable[[Volumes, int], list[Frame]]

_MYOCARDIUM_AFTER_PEAK = 6  # heartbeats, one frame each
_WINDOW_AFTER_PEAK = 12


def _lge(volumes: Volumes, quota: int) -> list[Frame]:
    """Short- and long-axis LGE (5.7): split 3:1 while the quota is small; all frames once it reaches them."""
    short = tuple(volume for volume in volumes if volume.volume_id == "lge_sax")
    long = tuple(volume for volume in volumes if volume.volume_id != "lge_sax")
    n_short, n_long = _n_frames(short), _n_frames(long)
    q_long = min(n_long, quota // 4)
    q_short = min(n_short, quota - q_long)
    return _lge_short_axis(short, q_short) + _lge_long_axes(long, min(n_long, quota - q_short))


def _lge_short_axis(volumes: Volumes, quota: int) -> list[Frame]:
    return [frame for volume in volumes for frame in _even_slices(volume, quota)]


def _lge_long_axes(volumes: Volumes, quota: int) -> list[Frame]:
    """Round-robin over the views, each from its central layer outward."""
    hands = [pick_all(volume, center_out(volume.n_frames)) for volume in volumes]
    dealt = chain.from_iterable(zip_longest(*hands))
    return [frame for frame in dealt if frame is not None][:quota]


def _first_pass(volume: VolumeStructure, quota: int) -> list[Frame]:
    """Perfusion (5.8): myocardial enhancement of every slice, the first-pass window, then other times."""
    t_myo, window, rest = _contrast_times(volume)
    chosen = [pick(volume, rank, t_myo, 1) for rank in even(volume.n_slices, quota)]
    chosen += _dealt(volume, window, quota - len(chosen), 2)
    return chosen + _dealt(volume, rest, quota - len(chosen), 3)


def _contrast_times(volume: VolumeStructure) -> tuple[int, list[int], list[int]]:
    """Time of myocardial enhancement, the other times of the first-pass window, and all remaining times."""
    last = volume.n_phases - 1
    t_on = 0 if volume.t_on is None else volume.t_on
    t_peak = volume.n_phases // 3 if volume.t_peak is None else volume.t_peak
    t_myo = min(last, t_peak + _MYOCARDIUM_AFTER_PEAK)
    window = [t for t in range(t_on, min(last, t_peak + _WINDOW_AFTER_PEAK) + 1) if t != t_myo]
    rest = [t for t in range(volume.n_phases) if t != t_myo and t not in window]
    return t_myo, window, rest


def _dealt(volume: VolumeStructure, times: list[int], n_wanted: int, step: int) -> list[Frame]:
    """Deal frames round-robin to slices mid, basal, apical, others; spread each slice's over the times."""
    first = cine.mid_first(cine.key_layers(volume))
    slices = first + [rank for rank in range(volume.n_slices) if rank not in first]
    counts = deal(max(0, min(n_wanted, len(slices) * len(times))), len(slices))
    return [
        pick(volume, rank, times[place], step)
        for rank, count in zip(slices, counts, strict=True)
        for place in even(len(times), count)
    ]


def _t2(volumes: Volumes, quota: int) -> list[Frame]:
    """Both T2 views as one source (5.9), split by the weights of the T2 subtasks."""
    weights = [rules().t2_weights[volume.volume_id] for volume in volumes]
    quotas = settle(split(quota, weights), [volume.n_frames for volume in volumes])
    return [frame for v, own in zip(volumes, quotas, strict=True) for frame in _even_slices(v, own)]


def _even_slices(volume: VolumeStructure, quota: int) -> list[Frame]:
    return pick_all(volume, even(volume.n_frames, quota))


def _n_frames(volumes: Volumes) -> int:
    return sum(volume.n_frames for volume in volumes)


def _single(cascade: Callable[[VolumeStructure, int], list[Frame]]) -> Cascade:
    return lambda volumes, quota: cascade(volumes[0], quota)


def _cascades(small_k: cine.SmallK) -> Mapping[str, Cascade]:
    long_axis = _single(partial(cine.long_axis, small_k=small_k))
    return {
        "cine_sax": _single(cine.short_axis),
        "cine_4ch": long_axis,
        "cine_3ch": long_axis,
        "cine_2ch": long_axis,
        "lge": _lge,
        "lge_sax": _lge_short_axis,
        "lge_lax": _lge_long_axes,
        "perf_sax": _single(_first_pass),
        "t2": _t2,
        "t2_sax": _single(_even_slices),
        "t2_4ch": _single(_even_slices),
    }


_CASCADES: Mapping[cine.SmallK, Mapping[str, Cascade]] = {
    "temporal": _cascades("temporal"),
    "spatial": _cascades("spatial"),
}


def extract(sources: tuple[Source, ...], volumes: Volumes, budget: int, small_k: cine.SmallK) -> list[Frame]:
    """Select frames of the routed sources; once they are used up, of their fallback volumes."""
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
    """Return the number of frames selected per volume at a budget; the small-K rule does not change it."""
    return Counter(frame.volume_id for frame in extract(sources, volumes, budget, "temporal"))


def fallbacks(sources: tuple[Source, ...], volumes: Volumes) -> Volumes:
    """Return the volumes that the sources fall back to, in order, without the routed ones."""
    names = [view for source in sources for view in rules().fallback.get(source.name, ())]
    if not names:
        return ()
    routed = {volume.volume_id for source in sources for volume in source.volumes}
    by_id = {volume.volume_id: volume for volume in volumes if volume.volume_id not in routed}
    return tuple(by_id.pop(view) for view in names if view in by_id)


def unknown_levels(routed: Routed) -> bool:
    """Return whether a cascade depends on the slice order of a stack whose order is unknown."""
    return any(not v.levels_known and v.volume_id in rules().levels for v in routed.volumes)
