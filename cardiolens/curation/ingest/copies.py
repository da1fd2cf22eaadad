"""Tell copies of an image from images that share its SOP instance UID, which some tools give to many."""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.image import Image, RejectedError
from cardiolens.curation.ingest.pixels import decoded
from cardiolens.runtime.processes import spread

SHARED_FLAG = "instance_uid_shared"
_WORTH = 400  # files from which further processes save more time than they take to start
_CHUNK = 32  # files per task of a process


def copies_and_namesakes(images: Iterable[Image]) -> tuple[set[Image], set[Image]]:
    """Return the images that are in an earlier file too, and different images that share a UID.

    Two images are one if UID, position, time and pixels are the same.
    """
    by_uid: dict[str, dict[Hashable, list[Image]]] = defaultdict(lambda: defaultdict(list))
    for image in images:
        if image.identity.instance:
            by_uid[image.identity.instance][_header(image)].append(image)
    alike = [group for groups in by_uid.values() for group in groups.values() if len(group) > 1]
    places = sorted({image.place for group in alike for image in group})
    digests = dict(
        zip(
            places,
            spread(_digests, places, chunk=_CHUNK, worth=len(places) >= _WORTH, lost=lambda _: ()),
            strict=True,
        )
    )
    copies = {image for group in alike for image in _later(group, digests)}
    namesakes: set[Image] = set()
    for groups in by_uid.values():
        different = {image for group in groups.values() for image in group} - copies
        namesakes |= different if len(different) > 1 else set()
    return copies, namesakes


def _header(image: Image) -> Hashable:
    """Return where and when a frame was taken."""
    place = (*image.position, *image.row_direction, *image.column_direction)
    times = (image.trigger, image.temporal, image.clock)
    number = image.instance_number if times == (None, None, None) else None
    return (*(round(value, 2) for value in place), *times, number)


def _digests(place: Place) -> Sequence[str]:
    """Return a digest of each frame's pixels; none if the file cannot be decoded."""
    try:
        return [hashlib.sha256(frame.tobytes()).hexdigest() for frame in decoded(place, one_phase=None)]
    except (RejectedError, OSError):
        return ()


def _later(group: Sequence[Image], digests: dict[Place, Sequence[str]]) -> set[Image]:
    """Return the images of a group whose pixels an earlier one has."""
    seen: set[str] = set()
    later: set[Image] = set()
    for image in group:
        of_file = digests[image.place]
        digest = of_file[image.frame] if image.frame < len(of_file) else image.place.name
        later |= {image} if digest in seen else set()
        seen.add(digest)
    return later
