"""The clinical selector: quotas by view, one cascade per source, then fallback to other views.

What the phases of a volume mean, and whether its slices form a stack, decides the cascade of one volume; the
anatomy names that of a pool.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, zip_longest

from cardiolens.protocol.select.selection import (
    Frame,
    Routed,
    Source,
    Volumes,
    center_out,
    deal,
    n_frames,
    pick,
    pick_all,
)
from cardiolens.study.structure import VolumeStructure, even


def short_axis(volume: VolumeStructure, quota: int) -> list[Frame]:
    """Select end-diastole of the slices first, then phases of key layers, then of other layers."""
    chosen = [pick(volume, rank, volume.ed_phase, 1) for rank in even(volume.n_slices, quota)]
    chosen += _key_layer_dynamics(volume, quota - len(chosen))
    remaining = [rank for rank in range(volume.n_slices) if rank not in key_layers(volume)]
    n_wanted = _at_most(volume, len(remaining), quota - len(chosen))
    extra = even(len(remaining), n_wanted % len(remaining)) if remaining else ()
    return chosen + _remaining_layer_dynamics(volume, remaining, n_wanted, extra)


def long_axis(volume: VolumeStructure, quota: int) -> list[Frame]:
    """Select phases of the central layer for small quotas, else end-diastole of the layers first."""
    layers = center_out(volume.n_slices)
    if quota <= volume.n_slices:
        return _temporal(volume, layers, quota)
    chosen = [pick(volume, layer, volume.ed_phase, 1) for layer in layers[:quota]]
    central = _systole_first(volume, quota - len(chosen))
    chosen += [pick(volume, layers[0], phase, 2) for phase in central]
    n_wanted = _at_most(volume, len(layers) - 1, quota - len(chosen))
    extra = range(n_wanted % (len(layers) - 1)) if len(layers) > 1 else ()
    return chosen + _remaining_layer_dynamics(volume, layers[1:], n_wanted, extra)


def fallback(volume: VolumeStructure, n_wanted: int) -> list[Frame]:
    """Select frames of a view outside the route: the cycle of its central layer, then of layers outward."""
    chosen: list[Frame] = []
    for layer in center_out(volume.n_slices):
        phases = even(volume.n_phases, n_wanted - len(chosen))
        chosen += [pick(volume, layer, phase, 4) for phase in phases]
    return chosen


def key_layers(volume: VolumeStructure) -> tuple[int, ...]:
    """Return the basal, mid and apical ranks, as declared or evenly spread by default."""
    return volume.key_layers or even(volume.n_slices, 3)


def mid_first(layers: Sequence[int]) -> list[int]:
    """Return key layers in dealing order: mid, basal, apical; unchanged if there are at most two."""
    return [layers[1], layers[0], *layers[2:]] if len(layers) > 2 else list(layers)


def _key_layer_dynamics(volume: VolumeStructure, n_wanted: int) -> list[Frame]:
    layers = mid_first(key_layers(volume))
    counts = deal(_at_most(volume, len(layers), n_wanted), len(layers))
    chosen = []
    for layer, count in zip(layers, counts, strict=True):
        phases = [_after_ed(volume, place) for place in even(volume.n_phases - 1, count)]
        if count == 1 and volume.es_phase != volume.ed_phase:
            phases = [volume.es_phase]  # otherwise a larger budget could show less motion than a smaller one
        chosen += [pick(volume, layer, phase, 2) for phase in phases]
    return chosen


def _remaining_layer_dynamics(
    volume: VolumeStructure, layers: Sequence[int], n_wanted: int, extra: Iterable[int]
) -> list[Frame]:
    """Spread non-ED phases evenly over layers, shifted per layer so that together they cover the cycle."""
    if n_wanted <= 0:
        return []
    candidates, extra, chosen = volume.n_phases - 1, set(extra), []
    for place, layer in enumerate(layers):
        count = n_wanted // len(layers) + (place in extra)
        shift = 0 if count in (0, candidates) else (place * candidates) // (len(layers) * count)
        phases = [_after_ed(volume, (at + shift) % candidates) for at in even(candidates, count)]
        chosen += [pick(volume, layer, phase, 3) for phase in phases]
    return chosen


def _temporal(volume: VolumeStructure, layers: Sequence[int], quota: int) -> list[Frame]:
    """Select ED, ES and an even sample of the other phases, layer by layer until the quota is filled."""
    chosen: list[Frame] = []
    for layer in layers:
        if len(chosen) < quota:
            phases = [volume.ed_phase, *_systole_first(volume, quota - len(chosen) - 1)]
            chosen += [pick(volume, layer, phase, 1) for phase in phases]
    return chosen


def _systole_first(volume: VolumeStructure, count: int) -> list[int]:
    """Return `count` phases besides ED: ES first, then an even sample of the others."""
    later_phases = [_after_ed(volume, place) for place in range(volume.n_phases - 1)]
    if count < 1 or volume.es_phase not in later_phases:
        return [later_phases[place] for place in even(len(later_phases), count)]
    later_phases.remove(volume.es_phase)
    return [volume.es_phase, *(later_phases[place] for place in even(len(later_phases), count - 1))]


def _after_ed(volume: VolumeStructure, place: int) -> int:
    return (volume.ed_phase + 1 + place) % volume.n_phases


def _at_most(volume: VolumeStructure, n_layers: int, n_wanted: int) -> int:
    """Return `n_wanted`, limited to the number of non-ED frames of the layers."""
    return max(0, min(n_wanted, n_layers * (volume.n_phases - 1)))


def split(budget: int, weights: Sequence[int]) -> list[int]:
    """Split a budget: one frame each, the rest by weight with largest remainder; ties in listed order."""
    if budget < len(weights):
        return [int(place < budget) for place in range(len(weights))]
    rest, total = budget - len(weights), sum(weights)
    quotas = [1 + rest * weight // total for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda place: -(rest * weights[place] % total))
    for place in by_remainder[: budget - sum(quotas)]:
        quotas[place] += 1
    return quotas


def settle(quotas: Sequence[int], capacities: Sequence[int]) -> list[int]:
    """Limit quotas to capacities; the total deficit goes to views with room, in listed order."""
    filled = [min(quota, capacity) for quota, capacity in zip(quotas, capacities, strict=True)]
    deficit = sum(quotas) - sum(filled)
    for place, capacity in enumerate(capacities):
        n_moved = min(deficit, capacity - filled[place])
        filled[place] += n_moved
        deficit -= n_moved
    return filled


_MYOCARDIUM_AFTER_PEAK = 6  # heartbeats, one frame each
_WINDOW_AFTER_PEAK = 12


def _stack_and_layers(volumes: Volumes, quota: int) -> list[Frame]:
    """Stacks and other views, as of LGE: 3:1 while the quota is small, then all frames."""
    stacks = tuple(volume for volume in volumes if volume.slice_axis is not None)
    others = tuple(volume for volume in volumes if volume.slice_axis is None)
    n_others = n_frames(others)
    q_stacked = min(n_frames(stacks), quota - min(n_others, quota // 4))
    chosen = _spread(stacks, q_stacked, [1] * len(stacks))
    return chosen + _outward(others, min(n_others, quota - q_stacked))


def _outward(volumes: Volumes, quota: int) -> list[Frame]:
    """Round-robin over the views, each from its central layer outward."""
    hands = [pick_all(volume, center_out(volume.n_frames)) for volume in volumes]
    dealt = chain.from_iterable(zip_longest(*hands))
    return [frame for frame in dealt if frame is not None][:quota]


def _spread(volumes: Volumes, quota: int, weights: Sequence[int]) -> list[Frame]:
    """Split a quota over views by their weights, and spread each part over the slices of its view."""
    quotas = settle(split(quota, weights), [volume.n_frames for volume in volumes])
    return [frame for v, own in zip(volumes, quotas, strict=True) for frame in _even_slices(v, own)]


def _even_slices(volume: VolumeStructure, quota: int) -> list[Frame]:
    return pick_all(volume, even(volume.n_frames, quota))


def _first_pass(volume: VolumeStructure, quota: int) -> list[Frame]:
    """Perfusion: myocardial enhancement of every slice, the first-pass window, then other times."""
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
    first = mid_first(key_layers(volume))
    slices = first + [rank for rank in range(volume.n_slices) if rank not in first]
    counts = deal(max(0, min(n_wanted, len(slices) * len(times))), len(slices))
    return [
        pick(volume, rank, times[place], step)
        for rank, count in zip(slices, counts, strict=True)
        for place in even(len(times), count)
    ]


def _cascade(source: Source, quota: int) -> list[Frame]:
    """Select the frames of one source."""
    volume = source.volumes[0]
    pool = volume.anatomy.pools.get(source.name)
    if pool is not None and pool.cascade == "weighted":
        return _spread(source.volumes, quota, [pool.weights[volume.volume_id] for volume in source.volumes])
    if pool is not None:
        return (_outward if pool.cascade == "outward" else _stack_and_layers)(source.volumes, quota)
    if volume.over_time == "first_pass":
        return _first_pass(volume, quota)
    if volume.over_time == "nothing":
        return _even_slices(volume, quota)
    is_stack = volume.slice_axis is not None
    return short_axis(volume, quota) if is_stack else long_axis(volume, quota)


def extract(sources: tuple[Source, ...], volumes: Volumes, budget: int) -> list[Frame]:
    """Select frames of the routed sources; once they are used up, of their fallback volumes."""
    capacities = [n_frames(source.volumes) for source in sources]
    quotas = settle(split(budget, [source.weight for source in sources]), capacities)
    chosen = [
        frame for source, quota in zip(sources, quotas, strict=True) for frame in _cascade(source, quota)
    ]
    if len(chosen) < budget:
        for volume in fallbacks(sources, volumes):
            chosen += fallback(volume, budget - len(chosen))
    return chosen


def fallbacks(sources: tuple[Source, ...], volumes: Volumes) -> Volumes:
    """Return the volumes that the sources fall back to, in order, without the routed ones."""
    if not sources:
        return ()
    fallback = sources[0].volumes[0].anatomy.fallback
    names = dict.fromkeys(view for source in sources for view in fallback.get(source.name, ()))
    routed = {volume.volume_id for source in sources for volume in source.volumes}
    by_id = {volume.volume_id: volume for volume in volumes if volume.volume_id not in routed}
    return tuple(by_id[view] for view in names if view in by_id)


def unknown_levels(routed: Routed) -> bool:
    """Return whether a cascade depends on the slice order of a stack and that order is unknown."""
    return any(
        not volume.levels_known and volume.slice_axis is not None and volume.over_time != "nothing"
        for volume in routed.volumes
    )
