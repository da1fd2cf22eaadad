"""Extraction from T2-weighted images, which have slices and no time (protocol 5.9)."""

from cardiolens.protocol.select.quota import settle, split
from cardiolens.protocol.select.routing_rules import rules
from cardiolens.protocol.select.selection import Frame, pick_all
from cardiolens.protocol.select.spread import even
from cardiolens.study.structure import VolumeStructure


def slices(volume: VolumeStructure, quota: int) -> list[Frame]:
    """Evenly spread slices."""
    return pick_all(volume, even(volume.n_frames, quota))


def pooled(volumes: tuple[VolumeStructure, ...], quota: int) -> list[Frame]:
    """Both T2 views as one source, split by the weights of the T2 subtasks."""
    weights = [rules().t2_weights[volume.volume_id] for volume in volumes]
    quotas = settle(split(quota, weights), [volume.n_frames for volume in volumes])
    return [frame for v, own in zip(volumes, quotas, strict=True) for frame in slices(v, own)]
