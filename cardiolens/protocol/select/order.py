"""The order in which chosen frames are shown (protocol 5.11)."""

from collections.abc import Callable, Iterable, Sequence

from cardiolens.protocol.select.route import Volumes
from cardiolens.protocol.select.selection import Frame

LADDER = (8, 16, 32, 64)  # budgets of 5.1; a nested order puts their frames first


def presented(frames: Iterable[Frame], volumes: Volumes) -> tuple[Frame, ...]:
    """Sort frames by volume as listed, then slice, then phase from end-diastole; a first pass by time."""
    places = {
        volume.volume_id: (place, 0 if volume.over_time == "first_pass" else volume.ed_phase, volume.n_phases)
        for place, volume in enumerate(volumes)
    }

    def key(frame: Frame) -> tuple[int, int, int]:
        place, first, n_phases = places[frame.volume_id]
        return place, frame.slice, (frame.phase - first) % n_phases

    return tuple(sorted(frames, key=key))


def nested(
    frames: Sequence[Frame], budget: int, smaller: Callable[[int], Sequence[Frame]]
) -> tuple[Frame, ...]:
    """Reorder frames: first those of the largest smaller LADDER budget, if all are among them.

    `smaller` returns the nested frames of a smaller budget. The ladder is fixed so that the order does not
    depend on the budgets of a sweep.
    """
    here = {(frame.volume_id, frame.idx): frame for frame in frames}
    for step in reversed([step for step in LADDER if step < budget]):
        first = [(frame.volume_id, frame.idx) for frame in smaller(step)]
        if all(place in here for place in first):
            front = set(first)
            rest = (frame for place, frame in here.items() if place not in front)
            return (*(here[place] for place in first), *rest)
    return tuple(frames)
