"""Whose images are: patients of DICOM headers, studies of several people, copies.

One examination has one scanner and one person, and lasts hours. Derived images may come from a workstation,
and do not count.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from cardiolens.curation.ingest.frame_records import Image, RejectedError
from cardiolens.curation.ingest.pixels import decoded
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.runtime.processes import spread

WORTH = 400  # files from which further processes save more time than they take to start
CHUNK = 32  # files per task of a process
_FACTS: dict[str, Callable[[Image], str]] = {
    "manufacturers": lambda image: image.person.manufacturer.upper().split(" ")[0],
    "models": lambda image: image.person.model.upper(),
    "field strengths": lambda image: "" if image.person.tesla is None else f"{image.person.tesla:.1f}",
    "sexes": lambda image: image.person.sex.upper(),
    "ages": lambda image: image.person.age.upper(),
    "dates of birth": lambda image: image.identity.birth_date,
    "dates": lambda image: image.identity.date,
    "serial numbers": lambda image: image.identity.device.upper(),
}
_LONGEST_S = 5 * 3600.0  # of an examination
_DAY_S = 24 * 3600.0
_SCATTERED = 20  # studies of one image each, from which a patient's ids are spoilt
_NOBODY = re.compile(r"anon\w*|unknown|none|null|n/a|xxx+|0+|patient|removed|deidentified", re.IGNORECASE)


def scattered(studies: Mapping[str, Sequence[Image]]) -> set[str]:
    """Return the studies of a patient who has many of one image each: nothing tells what belongs together."""
    of_patient: dict[str, list[str]] = defaultdict(list)
    for study_id, images in studies.items():
        if images[0].nifti is None:
            of_patient[images[0].identity.patient].append(study_id)
    return {
        study_id
        for ids in of_patient.values()
        if len(ids) >= _SCATTERED and all(len(studies[each]) == 1 for each in ids)
        for study_id in ids
    }


def corrected_patients(images: Iterable[Image]) -> dict[tuple[str, str], str | None]:
    """Return the patient of each study (PatientID, study) whose id misleads; None if the patient is unclear.

    An id such as ANON stands for nobody, so that each study is a patient. Studies of one id with several
    birth dates, or else several sexes, are of as many people; one that states neither is unclear.
    """
    studies: dict[str, dict[str, list[Image]]] = defaultdict(lambda: defaultdict(list))
    for image in images:
        studies[image.identity.patient][image.identity.study].append(image)
    facts = (lambda image: image.identity.birth_date, lambda image: image.person.sex.upper()[:1])
    patients: dict[tuple[str, str], str | None] = {}
    for patient, members in studies.items():
        if _NOBODY.fullmatch(patient):
            patients |= {(patient, study): "" for study in members}
            continue
        for fact in facts if patient else ():
            stated = {study: "/".join(sorted({*map(fact, of)} - {""})) for study, of in members.items()}
            if len({*stated.values()} - {""}) > 1:
                patients |= {
                    (patient, study): f"{patient} ({text})" if text else None
                    for study, text in stated.items()
                }
                break
    return patients


def mixed(images: Sequence[Image]) -> str:
    """Return what of one examination differs within a study's original images, else nothing."""
    originals = [image for image in images if image.image_type[:1] != ("DERIVED",)]
    several = [name for name, fact in _FACTS.items() if len({*map(fact, originals)} - {""}) > 1]
    if several:
        return f"several {', '.join(several)}"
    clocks = np.unique(
        [image.clock for image in originals if image.clock is not None and image.nifti is None]
    )
    if len(clocks) < 2:
        return ""
    pauses = np.diff(
        np.append(clocks, clocks[0] + _DAY_S)
    )  # a day without its longest pause: it may pass midnight
    lasts_s = float(_DAY_S - pauses.max())
    return f"it lasts {lasts_s / 3600:.0f} hours" if lasts_s > _LONGEST_S else ""


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
    by_place = spread(_digests, places, chunk=CHUNK, worth=len(places) >= WORTH, lost=lambda _: {})
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


def _digests(place: Path) -> dict[int, str]:
    """Return a digest of each frame's values, however they are stored; none if they cannot be decoded."""
    try:
        frames = decoded(place)
    except (RejectedError, OSError):
        return {}
    return {
        number: hashlib.sha256(frame.astype("<f8").tobytes()).hexdigest()
        for number, frame in enumerate(frames)
    }


def _copies(
    group: Sequence[Image], digests: Mapping[Path, Mapping[int, str]]
) -> Iterator[tuple[Image, Reason]]:
    """Yield the images of a group that an earlier one repeats, and those that are damaged."""
    of_image = {image: digests[image.place].get(image.frame, "") for image in group}
    earlier: set[str] = set()
    for image, digest in of_image.items():
        if not digest and any(of_image.values()):
            yield image, Reason.BROKEN_FILE
        elif digest in earlier:
            yield image, Reason.DUPLICATE
        earlier.add(digest)
