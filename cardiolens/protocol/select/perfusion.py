"""Extraction from first-pass perfusion by its contrast times (protocol 5.8)."""

from cardiolens.protocol.select.cine import key_layers, mid_first
from cardiolens.protocol.select.selection import Frame, pick
from cardiolens.protocol.select.spread import deal, even
from cardiolens.study.structure import VolumeStructure

_MYOCARDIUM_AFTER_PEAK = 6  # heartbeats, one frame each
_WINDOW_AFTER_PEAK = 12


def first_pass(volume: VolumeStructure, quota: int) -> list[Frame]:
    """Myocardial enhancement of every slice first, then the first-pass window, then the other times."""
    t_myo, window, rest = _times(volume)
    chosen = [pick(volume, rank, t_myo, 1) for rank in even(volume.n_slices, quota)]
    chosen += _dealt(volume, window, quota - len(chosen), 2)
    return chosen + _dealt(volume, rest, quota - len(chosen), 3)


def _times(volume: VolumeStructure) -> tuple[int, list[int], list[int]]:
    """Time of myocardial enhancement, the window around the first pass without it, and all other times."""
    last = volume.n_phases - 1
    t_on = 0 if volume.t_on is None else volume.t_on
    t_peak = volume.n_phases // 3 if volume.t_peak is None else volume.t_peak
    t_myo = min(last, t_peak + _MYOCARDIUM_AFTER_PEAK)
    window = [t for t in range(t_on, min(last, t_peak + _WINDOW_AFTER_PEAK) + 1) if t != t_myo]
    rest = [t for t in range(volume.n_phases) if t != t_myo and t not in window]
    return t_myo, window, rest


def _dealt(volume: VolumeStructure, times: list[int], n_wanted: int, step: int) -> list[Frame]:
    """Frames dealt round-robin to slices mid, basal, apical, others; each slice's spread over the times."""
    first = mid_first(key_layers(volume))
    slices = first + [rank for rank in range(volume.n_slices) if rank not in first]
    counts = deal(max(0, min(n_wanted, len(slices) * len(times))), len(slices))
    return [
        pick(volume, rank, times[place], step)
        for rank, count in zip(slices, counts, strict=True)
        for place in even(len(times), count)
    ]
