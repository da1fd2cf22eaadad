"""Sort the frames of slices into phases, by the first key that tells all frames of a slice apart."""

from collections.abc import Callable, Sequence

from cardiolens.curation.ingest.image import Image

_KEYS: dict[str, Callable[[Image], float | None]] = {
    "trigger time": lambda image: image.trigger,
    "temporal position": lambda image: image.temporal,
    "clock": lambda image: image.clock,
    "instance number": lambda image: image.instance_number,
}
_CINE_KEYS = ("trigger time", "temporal position", "clock", "instance number")
_PASS_KEYS = ("temporal position", "clock", "trigger time", "instance number")


def ordered_phases(
    places: Sequence[Sequence[Image]], sequence: str
) -> tuple[tuple[tuple[Image, ...], ...], str] | None:
    """Sort each slice's frames by the first key that distinguishes them all; return the key's name too."""
    if all(len(place) == 1 for place in places):
        return tuple(tuple(place) for place in places), "nothing"
    for name in _PASS_KEYS if sequence == "perfusion" else _CINE_KEYS:
        key = _KEYS[name]
        values = [[key(image) for image in place] for place in places]
        if all(None not in line and len(set(line)) == len(line) for line in values):
            return tuple(tuple(sorted(place, key=lambda image: key(image) or 0.0)) for place in places), name
    return None
