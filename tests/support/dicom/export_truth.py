"""The truth of an export: one JSON line per study, outside the folder that an importer receives."""

from dataclasses import asdict, dataclass
from typing import Any

from tests.support.dicom.exam import Exam
from tests.support.dicom.series import Image, Series
from tests.support.dicom.stacks import Stack


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
