"""The order in which chosen frames are shown (specification 5.11)."""

from collections.abc import Iterable

from cardiolens.select.route import Volumes
from cardiolens.select.selection import Frame


def presented(frames: Iterable[Frame], volumes: Volumes) -> tuple[Frame, ...]:
    """By volume as listed, then slice, then phase from end-diastole; perfusion by time."""
    places = {
        volume.volume_id: (place, 0 if volume.sequence == "perfusion" else volume.ed_phase, volume.n_phases)
        for place, volume in enumerate(volumes)
    }

    def key(frame: Frame) -> tuple[int, int, int]:
        place, first, n_phases = places[frame.volume_id]
        return place, frame.slice, (frame.phase - first) % n_phases

    return tuple(sorted(frames, key=key))
