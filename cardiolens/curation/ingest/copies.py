"""Tell copies of an image from images that share its SOP instance UID, which some tools give to many."""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.image import Image, RejectedError
from cardiolens.curation.ingest.pixels import decoded
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.runtime.processes import spread

SHARED_FLAG = "instance_uid_shared"
_WORTH = 400  # files from which further processes save more time than they take to start
_CHUNK = 32  # files per task of a process


def copies_and_namesakes(images: Iterable[Image]) -> tuple[dict[Image, Reason], set[Image]]:
    """Return why some images are left out beside another of their UID, and different images that share one.

    Two images are one if UID, position, time and pixels are the same. Where only one's pixels can be
    decoded, the other is a damaged copy.
    """
    by_uid: dict[str, dict[Hashable, list[Image]]] = defaultdict(lambda: defaultdict(list))
    for image in images:
        if image.identity.instance:
            by_uid[image.identity.instance][_header(image)].append(image)
    alike = [group for groups in by_uid.values() for group in groups.values() if len(group) > 1]
    places = sorted({image.place for group in alike for image in group})
    worth = len(places) >= _WORTH
    by_place = spread(_digests, places, chunk=_CHUNK, worth=worth, lost=lambda _: {})
    digests = dict(zip(places, by_place, strict=True))
    copies = {image: reason for group in alike for image, reason in _copies(group, digests)}
    namesakes: set[Image] = set()
    for groups in by_uid.values():
        different = {image for group in groups.values() for image in group} - copies.keys()
        namesakes |= different if len(different) > 1 else set()
    return copies, namesakes


def _header(image: Image) -> Hashable:
    """Return where and when a frame was taken."""
    place = (*image.position, *image.row_direction, *image.column_direction)
    times = (image.trigger, image.temporal, image.clock)
    number = image.instance_number if times == (None, None, None) else None
    return (*(round(value, 2) for value in place), *times, number)


def _digests(place: Place) -> dict[int, str]:
    """Return a digest of each frame's values, however they are stored; none if they cannot be decoded."""
    try:
        frames = decoded(place, one_phase=None)
    except (RejectedError, OSError):
        return {}
    return {
        number: hashlib.sha256(frame.astype("<f8").tobytes()).hexdigest()
        for number, frame in enumerate(frames)
    }


def _copies(
    group: Sequence[Image], digests: Mapping[Place, Mapping[int, str]]
) -> Iterator[tuple[Image, Reason]]:
    """Yield the images of a group that an earlier one repeats, and those that are damaged."""
    of_image = {image: digests[image.place].get(image.frame, "") for image in group}
    earlier: set[str] = set()
    for image, digest in of_image.items():
        if not digest and any(of_image.values()):
            yield image, Reason.BROKEN_PIXELS
        elif digest in earlier:
            yield image, Reason.DUPLICATE
        earlier.add(digest)
