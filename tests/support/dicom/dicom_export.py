"""Write a phantom cohort as a scanner or PACS would: `export/`, with `truth.jsonl` beside it."""

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pydicom.dataset import Dataset, FileMetaDataset
from pydicom.pixels.encoders.base import get_encoder
from pydicom.uid import UID, ExplicitVRLittleEndian, ImplicitVRLittleEndian, JPEG2000Lossless, RLELossless

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.geometry import Heart
from cardiolens.phantom.phantom_cohort import planned
from cardiolens.phantom.planes import sizes
from cardiolens.phantom.roster import study
from cardiolens.phantom.signal import appearance
from tests.support.dicom.classic import classic_images
from tests.support.dicom.exam import Exam, ExportSpec, TransferSyntax, exam_of
from tests.support.dicom.habits import Habit, habits
from tests.support.dicom.multiframe import multiframe_image
from tests.support.dicom.patient_identity import uid
from tests.support.dicom.series import Image, Series, exam_series
from tests.support.dicom.stacks import Camera, Stack, scouts, volumes


@dataclass(frozen=True)
class WrittenSeries:
    """A written series; `at` holds SOPInstanceUID, frame number from 1 (or None) and file of each image."""

    series: Series
    uid: str
    at: tuple[tuple[str, int | None, str | None], ...]


def truth_of(exam: Exam, folder: str, series_files: list[WrittenSeries]) -> dict[str, Any]:
    """Return the truth record of a study."""
    return {
        "schema": "dicom-truth-1",
        "study_id": exam.study_id,
        "vendor": exam.spec.vendor,
        "habit": exam.spec.habit or None,
        "patient_id": exam.identity.patient_id,
        "study_uid": exam.uid("study"),
        "folder": folder,
        "pose": [[float(part) for part in row] for row in exam.pose],
        "identity": asdict(exam.identity),
        "volumes": _volumes(exam, series_files),
        "series": [_series(series) for series in series_files],
    }


def _volumes(exam: Exam, series_files: list[WrittenSeries]) -> dict[str, Any]:
    """Return kind, pixel source and display of every stack, by name."""
    slices: dict[str, list[int]] = {}
    stacks: dict[str, Stack] = {}
    for series in series_files:
        for image in series.series.images:
            stacks[image.stack.name] = image.stack
            slice_numbers = slices.setdefault(image.stack.name, [])
            if image.slice not in slice_numbers:
                slice_numbers.append(image.slice)
    return {name: _volume(exam, stack, slices[name]) for name, stack in stacks.items()}


def _volume(exam: Exam, stack: Stack, slices: list[int]) -> dict[str, Any]:
    component = exam.dialect.acquisitions[stack.kind].component
    return {
        "sequence": stack.sequence,
        "view": stack.view,
        "left_out": stack.left_out or None,
        "twin": stack.acquisition if stack.kind == "psir" else None,
        "component": component,
        "pixels": None if stack.source is None else asdict(stack.source),
        "n_slices": len(slices),
        "n_phases": stack.phases,
        "ed": 0 if stack.es is not None else None,
        "es": stack.es,
        "display": asdict(exam.stored(stack)),
    }


def _series(one: WrittenSeries) -> dict[str, Any]:
    series = one.series
    reasons = {image.stack.left_out for image in series.images}
    return {
        "series_uid": one.uid,
        "number": series.number,
        "description": series.name.description,
        "protocol": series.name.protocol,
        "name_is": series.name.state,
        "left_out": reasons.pop() if len(reasons) == 1 and "" not in reasons else None,
        "volumes": list(dict.fromkeys(image.stack.name for image in series.images)),
        "images": [_image(image, at) for image, at in zip(series.images, one.at, strict=True)],
    }


def _image(image: Image, at: tuple[str, int | None, str | None]) -> list[Any]:
    """Return volume, slice, phase, SOPInstanceUID, frame number and file of an image."""
    return [image.stack.name, image.slice, image.phase, *at]


def make_export(spec: PhantomSpec, export_spec: ExportSpec, folder: Path) -> None:
    """Make `folder/export/` and `folder/truth.jsonl`; the folder must be absent or empty.

    Studies are made and written one after another, so memory does not grow with the cohort. All files are
    written to a temporary folder that is renamed at the end.
    """
    ids = planned(spec, folder)
    check_encoder(export_spec.transfer_syntax)
    _habit(export_spec)
    with disk.draft_folder(folder) as draft, disk.open_text(draft / "truth.jsonl") as lines:
        (draft / "export").mkdir()
        for study_id in ids:
            record = write_exam(study_id, spec, export_spec, draft / "export")
            lines.write(json.dumps(record, ensure_ascii=False) + "\n")


def write_exam(study_id: str, spec: PhantomSpec, export_spec: ExportSpec, export: Path) -> dict[str, Any]:
    """Render the exam of one study, write it under `export`, and return its truth."""
    drawn_study, size = study(spec.seed, study_id), sizes()[spec.size]
    heart, look = (
        Heart(drawn_study.parameters),
        appearance(spec.difficulty, drawn_study.seed, size.spacing_mm),
    )
    exam = exam_of(study_id, drawn_study.seed, export_spec, size)
    camera = Camera(heart, size, look, drawn_study.seed, exam.patient)
    offset = exam.dialect.psir_offset
    stacks = [*scouts(camera), *volumes(heart, size, look, drawn_study.seed, psir_offset=offset)]
    folder, written, serial = _path(exam, exam.dialect.folder), [], 0
    every_series, habit = exam_series(exam, stacks), _habit(export_spec)
    syntax = (habit and habit.syntax) or export_spec.transfer_syntax
    for series in every_series:
        datasets = _datasets(exam, series)
        if habit is not None:
            datasets = habit.changed(exam, series, every_series, datasets)
        names = []
        for place, dataset in enumerate(datasets, start=1):
            numbers = {"series": series.number, "instance": place, "serial": serial + place}
            protocol = series.name.protocol or "unnamed"
            names.append(f"{folder}/{_path(exam, exam.dialect.file, protocol=protocol, **numbers)}")
            write_file(export / names[-1], dataset, syntax, bare=habit is not None and habit.bare)
        at = _acquired(exam, series, names if habit is None else None)
        serial += len(at) if habit is None else len(names)
        written.append(WrittenSeries(series, exam.uid("series", series.number), at))
    return truth_of(exam, folder, written)


def _datasets(exam: Exam, series: Series) -> Iterable[Dataset]:
    return [multiframe_image(exam, series)] if exam.dialect.multiframe else classic_images(exam, series)


def _acquired(
    exam: Exam, series: Series, names: Sequence[str] | None
) -> tuple[tuple[str, int | None, str | None], ...]:
    """Return ids and frames as the scanner gave them, and their files; None where a habit left others."""
    count = len(series.images)
    if exam.dialect.multiframe:
        [name] = names or [None]
        uid = exam.uid("image", series.number)
        return tuple((uid, frame, name) for frame in range(1, count + 1))
    uids = (exam.uid("image", series.number, place) for place in range(count))
    return tuple((uid, None, name) for uid, name in zip(uids, names or [None] * count, strict=True))


def _habit(spec: ExportSpec) -> Habit | None:
    """Return the habit of an export; InputError for an unknown one, or one of another vendor."""
    if not spec.habit:
        return None
    habit = habits().get(spec.habit)
    if habit is None:
        raise InputError(f"habit={spec.habit}: is unknown; choose one of {', '.join(habits())}")
    if habit.vendor != spec.vendor:
        raise InputError(
            f"habit={spec.habit}: is one of vendor={habit.vendor}, not of {spec.vendor}; correct vendor"
        )
    return habit


_COMPRESSED = {"rle": RLELossless, "jpeg2000": JPEG2000Lossless}


def write_file(path: Path, dataset: Dataset, syntax: TransferSyntax, *, bare: bool = False) -> None:
    """Write a dataset; the bytes depend on its content, not on the library's version.

    `bare`: without preamble and meta information.
    """
    dataset.file_meta = FileMetaDataset()
    dataset.file_meta.MediaStorageSOPClassUID = dataset.SOPClassUID
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.SOPInstanceUID
    dataset.file_meta.ImplementationClassUID = UID(uid("cardiolens phantom"))
    dataset.file_meta.ImplementationVersionName = "PHANTOM_1"
    plain = ImplicitVRLittleEndian if syntax == "implicit" else ExplicitVRLittleEndian
    dataset.file_meta.TransferSyntaxUID = plain
    if syntax in _COMPRESSED:
        dataset.compress(_COMPRESSED[syntax], generate_instance_uid=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    if bare:
        del dataset.file_meta
        dataset.save_as(path, implicit_vr=syntax == "implicit", little_endian=True)
    else:
        dataset.save_as(path, enforce_file_format=True)


def check_encoder(syntax: TransferSyntax) -> None:
    """Raise InputError if the compressor of a transfer syntax is not installed."""
    if syntax in _COMPRESSED and not get_encoder(_COMPRESSED[syntax]).is_available:
        raise InputError(
            f"transfer_syntax={syntax}: its encoder is not installed; install the extra `dicom`, "
            "or choose one of explicit, implicit, rle"
        )


def _path(exam: Exam, template: str, **words: Any) -> str:
    """Fill a dialect's path template; paths name the patient, as scanners do, without odd characters."""
    who = exam.identity
    surname, forename = (re.sub(r"[^\w-]", "_", part) for part in who.name.split("^"))
    fields = {
        "surname": surname,
        "forename": forename,
        "patient_id": who.patient_id,
        "date": who.study_date,
        "time": who.study_time,
        "exam": exam.uid("folder")[-10:],
    }
    if "protocol" in words:
        words["protocol"] = re.sub(r"[^\w-]", "_", words["protocol"])
    return template.format(**fields, **words)
