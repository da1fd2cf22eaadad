"""Whose images are: patients of DICOM headers, studies of several people, copies.

One examination has one scanner and one person, lasts hours, and has one heart in one place. Derived
images may come from a workstation, and do not count.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardiolens.curation.ingest.frame_records import Image, RejectedError
from cardiolens.curation.ingest.pixels import decoded
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.runtime.processes import spread

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
_MEASURES: dict[
    str, tuple[Callable[[Image], float | None], float]
] = {  # and by how much typing errors differ
    "heights": (lambda image: image.identity.height_m, 0.1),
    "weights": (lambda image: image.identity.weight_kg, 10.0),
}
_LONGEST_S = 5 * 3600.0  # of an examination
_DAY_S = 24 * 3600.0
_FEWEST_SLICES, _FEWEST_PHASES = 6, 8  # of a stack that shows the whole heart over its cycle
_APART_MM = 60.0  # of stacks along the same direction
_TURNED = (12.0, 40.0)  # degrees: planned anew lies closer, other views lie further off
_SCATTERED = 20  # studies of one image each, from which a patient's ids are spoilt


def scattered(studies: Mapping[str, Sequence[Image]]) -> set[str]:
    """Return the studies of a patient who has many of one image each: nothing tells what belongs together."""
    of_patient: dict[str, list[str]] = {}
    for study_id, images in studies.items():
        if images[0].rule is None:
            of_patient.setdefault(images[0].identity.patient, []).append(study_id)
    return {
        study_id
        for ids in of_patient.values()
        if len(ids) >= _SCATTERED and all(len(studies[each]) == 1 for each in ids)
        for study_id in ids
    }


_NOBODY = re.compile(r"anon\w*|unknown|none|null|n/a|xxx+|0+|patient|removed|deidentified", re.IGNORECASE)


def corrected_patients(images: Iterable[Image]) -> dict[tuple[str, str], str | None]:
    """Return the patient of each study (PatientID, study) whose id misleads; None if the patient is unclear.

    An id such as ANON stands for nobody, so that each study is a patient. Studies of one id with several
    birth dates, or else several sexes, are of as many people; one that states neither is unclear.
    """
    facts: dict[str, dict[str, tuple[set[str], set[str]]]] = defaultdict(
        lambda: defaultdict(lambda: (set(), set()))
    )
    for image in images:
        births, sexes = facts[image.identity.patient][image.identity.study]
        births.add(image.identity.birth_date)
        sexes.add(image.person.sex.upper()[:1])
    patients: dict[tuple[str, str], str | None] = {}
    for patient, studies in facts.items():
        if _NOBODY.fullmatch(patient):
            patients |= {(patient, study): "" for study in studies}
            continue
        for fact in (0, 1):  # birth date, sex
            stated = {study: "/".join(sorted(each[fact] - {""})) for study, each in studies.items()}
            if patient and len({*stated.values()} - {""}) > 1:
                patients |= {
                    (patient, study): f"{patient} ({text})" if text else None
                    for study, text in stated.items()
                }
                break
    return patients


def mixed(images: Sequence[Image]) -> str:
    """Return what of one examination differs within a study's original images, else nothing."""
    originals = [image for image in images if image.image_type[:1] != ("DERIVED",)]
    several = [
        name
        for name, fact in _FACTS.items()
        if len({value for image in originals if (value := fact(image))}) > 1
    ]
    for name, (measure, tolerance) in _MEASURES.items():
        sizes = [size for image in originals if (size := measure(image))]
        if sizes and max(sizes) - min(sizes) > tolerance:
            several.append(name)
    if several:
        return f"several {', '.join(several)}"
    if (lasts_s := _duration_s(originals)) > _LONGEST_S:
        return f"it lasts {lasts_s / 3600:.0f} hours"
    return _two_places(originals)


def _duration_s(images: Sequence[Image]) -> float:
    """Return how long an examination lasts: a day without its longest pause, as it may pass midnight."""
    clocks = np.unique([image.clock for image in images if image.clock is not None and image.rule is None])
    if len(clocks) < 2:
        return 0.0
    pauses = np.diff(np.append(clocks, clocks[0] + _DAY_S))
    return float(_DAY_S - pauses.max())


def _two_places(images: Sequence[Image]) -> str:
    """Return how two stacks of one name differ that both show the whole heart, if no heart moves so."""
    for (normal, centre), (other_normal, other_centre) in _pairs(images):
        turned = float(np.degrees(np.arccos(min(abs(float(normal @ other_normal)), 1.0))))
        if _TURNED[0] < turned < _TURNED[1]:
            return f"stacks of one name are turned by {turned:.0f} degrees"
        apart = float(np.linalg.norm(centre - other_centre))
        if turned <= _TURNED[0] and apart > _APART_MM:
            return f"stacks of one name lie {apart:.0f} mm apart"
    return ""


_Spot = tuple[NDArray[np.float64], NDArray[np.float64]]  # normal and centre of a stack


def _pairs(images: Sequence[Image]) -> Iterator[tuple[_Spot, _Spot]]:
    """Yield the places of any two whole cines of one name; frames of one series share rows and columns."""
    series: dict[tuple[object, ...], list[Image]] = defaultdict(list)
    for image in images:
        if image.rule is None:
            plane = tuple(np.round((*image.row_direction, *image.column_direction), 2))
            series[image.description, image.protocol, image.identity.series, plane].append(image)
    whole: dict[tuple[object, ...], list[_Spot]] = defaultdict(list)
    for key, members in series.items():
        corners = {tuple(np.round(image.position, 1)) for image in members}
        if len(corners) >= _FEWEST_SLICES and len(members) >= _FEWEST_PHASES * len(corners):
            whole[key[:2]].append(_place(members))
    for places in whole.values():
        yield from combinations(places, 2)


def _place(images: Sequence[Image]) -> _Spot:
    rows, columns = np.array(images[0].row_direction), np.array(images[0].column_direction)
    half_mm = [0.5 * images[0].columns * images[0].spacing[1], 0.5 * images[0].rows * images[0].spacing[0]]
    corner = np.mean([image.position for image in images], axis=0)
    return np.cross(rows, columns), corner + half_mm[0] * rows + half_mm[1] * columns


WORTH = 400  # files from which further processes save more time than they take to start
CHUNK = 32  # files per task of a process


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
    worth = len(places) >= WORTH
    by_place = spread(_digests, places, chunk=CHUNK, worth=worth, lost=lambda _: {})
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
