"""The frames of an export by study and person: headers are read once, and nobody is merged with another."""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.assignment import Assignment, assigned
from cardiolens.curation.ingest.dicom import read_images
from cardiolens.curation.ingest.export_files import Export, find, path_below
from cardiolens.curation.ingest.frame_records import Image
from cardiolens.curation.ingest.ids import Pseudonyms, public_pseudonyms
from cardiolens.curation.ingest.nifti_file import SUFFIXES
from cardiolens.curation.ingest.nifti_frames import add_nifti
from cardiolens.curation.ingest.reasons import Reason

_CHUNK = 32  # files per task of a process
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


def read_export(spec: IngestSpec, names: Pseudonyms) -> Export:
    """Read the headers of all files of a source."""
    export = Export(spec.source, names)
    nifti, jsons, plain = dict[str, Path](), dict[str, Path](), dict[str, Path]()
    for candidate in find(spec.source):
        name = path_below(candidate.place, spec.source)
        export.candidates[name] = candidate
        if candidate.reason is None:
            is_nifti, is_json = name.lower().endswith(SUFFIXES), name.lower().endswith(".json")
            (nifti if is_nifti else jsons if is_json else plain)[name] = candidate.place
    assignment = assigned(spec.layout, nifti, plain | jsons)
    if assignment is not None:
        export.layout = assignment.layout
        export.names = public_pseudonyms(assignment.layout.name) if assignment.layout.public else names
        roles = assignment.roles
        for name in (nifti | plain).keys() - roles.keys() - assignment.information:
            export.reject(name, Reason.NOT_OF_LAYOUT)
        nifti, plain = ({name: files[name] for name in files if name in roles} for files in (nifti, plain))
    for name, candidate in export.candidates.items():
        if candidate.reason is not None:
            export.reject(name, candidate.reason, candidate.detail)
    _add_dicom(export, plain, assignment)
    add_nifti(export, nifti, jsons, assignment, spec.subject)
    return export


def _add_dicom(export: Export, files: Mapping[str, Path], assignment: Assignment | None) -> None:
    images: list[Image] = []
    for name, read in export.read_files(files, read_images, chunk=_CHUNK):
        images += read if assignment is None else assignment.of_subject(name, read)
    for image in images if assignment is not None else _of_people(export, images):
        export.take(image)
        if assignment is not None:  # a study is imported again if a table of its set changes
            for name in assignment.facts[image.identity.patient].files:
                export.use(image, name)


# Which person an image is of: one examination has one scanner and one person, and lasts hours. Derived images
# may come from a workstation, and do not count.


def _of_people(export: Export, images: Sequence[Image]) -> Iterator[Image]:
    """Yield images with the patients that headers distinguish; reject images of an unclear patient."""
    patients = _corrected_patients(images)
    for image in images:
        key = image.identity.patient, image.identity.study
        patient = patients.get(key, key[0])
        if patient is None:
            name = path_below(image.place, export.source)
            export.reject(name, Reason.PATIENT_UNCLEAR, frame=image.frame)
        else:
            yield replace(image, identity=replace(image.identity, patient=patient))


def _corrected_patients(images: Iterable[Image]) -> dict[tuple[str, str], str | None]:
    """Return the patient of each study (PatientID, study) with a misleading id; None if it is unclear.

    An id such as ANON stands for nobody, so that each study is a patient. Studies of one id with several
    birth dates, or else several sexes, are of as many people; one that states neither is unclear. So are all
    of a patient with many studies of one image each: an anonymiser spoilt their ids.
    """
    studies: dict[str, dict[str, list[Image]]] = defaultdict(lambda: defaultdict(list))
    for image in images:
        studies[image.identity.patient][image.identity.study].append(image)
    patients: dict[tuple[str, str], str | None] = {}
    for patient, members in studies.items():
        counts = {len({image.identity.instance or image.place for image in of}) for of in members.values()}
        if len(members) >= _SCATTERED and counts == {1}:
            patients |= {(patient, study): None for study in members}
            continue
        if _NOBODY.fullmatch(patient):
            patients |= {(patient, study): "" for study in members}
            continue
        for fact in (_FACTS["dates of birth"], _FACTS["sexes"]) if patient else ():
            stated = {study: "/".join(sorted({*map(fact, of)} - {""})) for study, of in members.items()}
            if len({*stated.values()} - {""}) > 1:
                renamed = {study: f"{patient} ({text})" if text else None for study, text in stated.items()}
                patients |= {(patient, study): name for study, name in renamed.items()}
                break
    return patients


def mixed(images: Sequence[Image]) -> str:
    """Return what of one examination differs within a study's original images, else nothing."""
    originals = [image for image in images if image.image_type[:1] != ("DERIVED",)]
    several = [name for name, fact in _FACTS.items() if len({*map(fact, originals)} - {""}) > 1]
    if several:
        return f"several {', '.join(several)}"
    clocks = sorted({each.clock for each in originals if each.clock is not None and each.nifti is None})
    if not clocks:
        return ""
    longest_pause = max(np.diff([*clocks, clocks[0] + _DAY_S]))  # an examination may pass midnight
    lasts_s = float(_DAY_S - longest_pause)
    return f"it lasts {lasts_s / 3600:.0f} hours" if lasts_s > _LONGEST_S else ""
