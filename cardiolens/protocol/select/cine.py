"""Cine cascades: the slices and phases that a quota shows (protocol 5.4 and 5.5)."""

from collections.abc import Iterable, Sequence
from typing import Literal

from cardiolens.protocol.select.selection import Frame, center_out, deal, even, pick
from cardiolens.study.structure import VolumeStructure

SmallK = Literal["temporal", "spatial"]


def short_axis(volume: VolumeStructure, quota: int) -> list[Frame]:
    """Select end-diastole of the slices first, then phases of key layers, then of other layers."""
    chosen = [pick(volume, rank, volume.ed_phase, 1) for rank in even(volume.n_slices, quota)]
    chosen += _key_layer_dynamics(volume, quota - len(chosen))
    remaining = [rank for rank in range(volume.n_slices) if rank not in key_layers(volume)]
    n_wanted = _at_most(volume, len(remaining), quota - len(chosen))
    extra = even(len(remaining), n_wanted % len(remaining)) if remaining else []
    return chosen + _remaining_layer_dynamics(volume, remaining, n_wanted, extra)


def long_axis(volume: VolumeStructure, quota: int, small_k: SmallK = "temporal") -> list[Frame]:
    """Select phases before layers for small quotas if `small_k` is temporal, else end-diastole first."""
    layers = center_out(volume.n_slices)
    if quota <= volume.n_slices and small_k == "temporal":
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
    """Return the basal, mid and apical ranks, as declared or by the default of 1.2."""
    return volume.key_layers or tuple(even(volume.n_slices, 3))


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
