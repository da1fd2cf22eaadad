"""Split a series into piles: frames of one orientation, grid and component, sorted by position."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from cardiolens.curation.ingest.evidence import Witness, best, weigh
from cardiolens.curation.ingest.image import Image
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.sequence import CLASSES, sequence_witnesses
from cardiolens.curation.ingest.stack import normal
from cardiolens.curation.ingest.words import Words

SAME_DIRECTION = np.cos(np.radians(1.0))
SAME_PLACE_MM = 0.5
_OVERRULED = ("map", "ti_scout")  # kinds by name that a cine stack of five slices refutes
_WEIGHED = ("localizer", "scout", "other_part")  # kinds by name that are one witness among others
_REPEATED = 0.25  # share of the phases of a slice that are there twice, from which they are no repeats
_MANY = 5  # images of one phase at one position that are no repeats
LeftOut = list[tuple[Image, Reason]]


@dataclass
class Pile:
    """Frames of one series in one orientation and component, sorted by position."""

    words: Words
    places: list[list[Image]]
    witnesses: list[Witness]
    sequence: str
    flags: list[str] = field(default_factory=list)

    @property
    def images(self) -> list[Image]:
        return [image for place in self.places for image in place]


def named_kind(pile: Pile, words: Words) -> Reason | None:
    """Return the reason to leave out a series by its name, unless its frames refute the name."""
    if words.kind is None or words.kind in _WEIGHED:
        return None
    refuted = pile.sequence == "cine" and len(pile.places) >= 5 and len(pile.places[0]) >= 8
    if refuted and words.kind in _OVERRULED:
        pile.flags.append("name_refuted")
        return None
    return Reason(words.kind)


def buckets(series: Sequence[Image]) -> list[list[Image]]:
    """Split a series by orientation (1 degree), matrix, spacing, component and echo."""
    buckets: list[list[Image]] = []
    for image in series:
        for bucket in buckets:
            if _one_bucket(bucket[0], image):
                bucket.append(image)
                break
        else:
            buckets.append([image])
    return buckets


def _one_bucket(first: Image, second: Image) -> bool:
    return (
        same_grid(first, second)
        and first.component == second.component
        and abs((first.echo or 0) - (second.echo or 0)) < 5
    )


def same_grid(first: Image, second: Image) -> bool:
    """Return whether two frames have the same matrix, spacing and orientation."""
    return (
        (first.rows, first.columns) == (second.rows, second.columns)
        and np.allclose(first.spacing, second.spacing, atol=1e-3)
        and float(np.dot(first.row_direction, second.row_direction)) > SAME_DIRECTION
        and float(np.dot(first.column_direction, second.column_direction)) > SAME_DIRECTION
    )


def pile_of(bucket: Sequence[Image], words: Words, left_out: LeftOut) -> Pile:
    """Make the pile of a bucket: its frames by position, and what sequence they are of."""
    places = places_of(bucket)
    per_place = Counter(map(len, places)).most_common(1)[0][0]
    witnesses = sequence_witnesses(bucket, per_place, words)
    sequence = sequence_of(witnesses)
    flags: list[str] = []
    places = [_once(place, sequence, left_out, flags) for place in places]
    if len(places) == 1 and sequence != "other" and _are_many(bucket, places[0]):
        flags.append("many_images_of_one_position")
    return Pile(words, places, witnesses, sequence, flags)


def _are_many(bucket: Sequence[Image], kept: Sequence[Image]) -> bool:
    """Return whether one position has so many images that they may be slices which lost their positions."""
    declared = max(max(image.phases_declared or 0, image.temporals_declared or 0) for image in bucket)
    return len(bucket) >= _MANY * len(kept) or 1 < declared <= len(kept) / 2


def sequence_of(witnesses: Sequence[Witness]) -> str:
    """Return the sequence that the witnesses name, `other` without any."""
    return best(weigh(witnesses, CLASSES))[0] if witnesses else "other"


def places_of(bucket: Sequence[Image]) -> list[list[Image]]:
    """Group frames by position along the common normal, in ascending order."""
    along = normal(bucket[0])
    ordered = sorted(bucket, key=lambda image: float(np.dot(image.position, along)))
    places: list[list[Image]] = []
    for image in ordered:
        here = float(np.dot(image.position, along))
        if places and here - float(np.dot(places[-1][0].position, along)) < SAME_PLACE_MM:
            places[-1].append(image)
        else:
            places.append([image])
    return places


def _once(place: list[Image], sequence: str, left_out: LeftOut, flags: list[str]) -> list[Image]:
    """Keep the last acquisition of a slice, or of a phase, that one series holds several times."""
    if sequence in _TIMES:
        groups: dict[object, list[Image]] = {}
        for image in place:
            groups.setdefault(_TIMES[sequence](image), []).append(image)
        again = len(place) - len(groups)
        if len(groups) < 2 or not again or any(_is_untimed(key) for key in groups):
            return place
        if sequence == "perfusion" or min(map(len, groups.values())) < 2:  # not the whole slice
            if again > _REPEATED * len(groups):
                return place
            flags.append("repeated_frames_left_out")
    elif sequence in ("lge", "t2") and len(place) > 1:
        groups = {None: place}
    else:
        return place
    unique = []
    for copies in groups.values():
        copies.sort(key=lambda image: (image.acquisition, image.clock or 0.0, image.instance_number))
        left_out += [(image, Reason.REPEAT) for image in copies[:-1]]
        unique.append(copies[-1])
    return unique


_TIMES: dict[str, Callable[[Image], object]] = {  # frames of a slice with the same are one phase
    "cine": lambda image: image.trigger,
    "perfusion": lambda image: (image.temporal, image.clock, image.trigger),
}


def _is_untimed(key: object) -> bool:
    return key is None or key == (None, None, None)
