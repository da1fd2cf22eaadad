"""Extraction from late gadolinium enhancement (protocol 5.7)."""

from itertools import chain, zip_longest

from cardiolens.protocol.select.selection import Frame, pick_all
from cardiolens.protocol.select.spread import center_out, even
from cardiolens.study.structure import VolumeStructure

Volumes = tuple[VolumeStructure, ...]


def short_and_long(volumes: Volumes, quota: int) -> list[Frame]:
    """A fixed 3:1 split for small quotas, everything once the quota reaches all frames."""
    short = tuple(volume for volume in volumes if volume.volume_id == "lge_sax")
    long = tuple(volume for volume in volumes if volume.volume_id != "lge_sax")
    n_short, n_long = _n_frames(short), _n_frames(long)
    q_long = min(n_long, quota // 4)
    q_short = min(n_short, quota - q_long)
    return short_axis(short, q_short) + long_axes(long, min(n_long, quota - q_short))


def short_axis(volumes: Volumes, quota: int) -> list[Frame]:
    """Evenly spread slices."""
    return [frame for volume in volumes for frame in pick_all(volume, even(volume.n_frames, quota))]


def long_axes(volumes: Volumes, quota: int) -> list[Frame]:
    """Round-robin over the views, each from its central layer outward."""
    hands = [pick_all(volume, center_out(volume.n_frames)) for volume in volumes]
    dealt = chain.from_iterable(zip_longest(*hands))
    return [frame for frame in dealt if frame is not None][:quota]


def _n_frames(volumes: Volumes) -> int:
    return sum(volume.n_frames for volume in volumes)
