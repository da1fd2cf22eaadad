"""Small exports for tests: classic DICOM of any grid of frames."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, generate_uid

MR = "1.2.840.10008.5.1.4.1.1.4"
PATIENT = {"PatientID": "MRN-77801", "PatientName": "DOE^JANE", "PatientBirthDate": "19610203"}
IDENTITIES = (
    "MRN-77801",
    "DOE^JANE",
    "19610203",
    "General Hospital",
    "WHO^REFERS",
    "ACC-991",
    "20240229",
    "Station-9",
)

SHORT_AXIS = [0.8, 0.0, 0.6, 0.36, 0.8, -0.48]
NORMAL = np.cross(SHORT_AXIS[:3], SHORT_AXIS[3:])  # toward the base

CINE = {
    "ScanningSequence": "GR",
    "SequenceVariant": "SK",
    "SequenceName": "*tfi2d1_12",
    "CardiacNumberOfImages": 12,
}
LGE = {"ScanningSequence": ["GR", "IR"], "InversionTime": 300.0}
PERFUSION = {"ScanningSequence": "GR", "SequenceName": "*tfl2d1"}


CURRENT = {"study": "1.2.3.4"}  # UID of the study that headers belong to, unless they say otherwise


def proposals(out: Path) -> list[dict[str, Any]]:
    """Return the proposals of all studies of an import."""
    paths = sorted(out.glob("proposals/*/proposals.json"))
    return [each for path in paths for each in json.loads(path.read_text())["proposals"]]


def rejects(out: Path) -> list[dict[str, Any]]:
    """Return the lines of `rejects.jsonl` of an import."""
    return [json.loads(line) for line in (out / "rejects.jsonl").read_text().splitlines()]


def builds(out: Path) -> list[dict[str, Any]]:
    """Return the `build.json` of all studies of an import."""
    return [json.loads(path.read_text()) for path in sorted(out.glob("proposals/*/build.json"))]


def contracting() -> np.ndarray:
    """A short-axis cine (slice, phase, row, column) of 6 slices x 8 phases: a disc that contracts."""
    rows, columns = np.indices((32, 32)) - 15.5
    radii = [(9 - k) * (1 - 0.4 * np.sin(np.pi * phase / 8)) for k in range(6) for phase in range(8)]
    frames = np.array([np.where(np.hypot(rows, columns) < radius, 900, 100) + rows for radius in radii])
    return frames.reshape(6, 8, 32, 32)


def header(**elements: Any) -> FileDataset:
    """A whole MR image of 32 x 32 pixels with everything that an importer needs; None removes an element."""
    meta = FileMetaDataset()
    meta.TransferSyntaxUID = ExplicitVRLittleEndian
    meta.MediaStorageSOPClassUID = MR
    dataset = FileDataset("", {}, file_meta=meta, preamble=b"\0" * 128)
    basic: dict[str, Any] = {
        "SOPClassUID": MR,
        "SOPInstanceUID": generate_uid(),
        "Modality": "MR",
        "ImageType": ["ORIGINAL", "PRIMARY", "M"],
        "StudyInstanceUID": CURRENT["study"],
        "SeriesInstanceUID": f"{CURRENT['study']}.5",
        "SeriesNumber": 5,
        "InstanceNumber": 1,
        "SeriesDescription": "cine_sax",
        "Manufacturer": "SIEMENS",
        "MagneticFieldStrength": 1.5,
        "PatientSex": "F",
        "PatientAge": "063Y",
        "InstitutionName": "General Hospital",
        "ReferringPhysicianName": "WHO^REFERS",
        "AccessionNumber": "ACC-991",
        "StudyDate": "20240229",
        "StationName": "Station-9",
        "Rows": 32,
        "Columns": 32,
        "PixelSpacing": [2.0, 2.0],
        "SliceThickness": 8.0,
        "ImagePositionPatient": [0.0, 0.0, 0.0],
        "ImageOrientationPatient": [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        "SamplesPerPixel": 1,
        "PhotometricInterpretation": "MONOCHROME2",
        "BitsAllocated": 16,
        "BitsStored": 12,
        "HighBit": 11,
        "PixelRepresentation": 0,
        **PATIENT,
        **elements,
    }
    for name, value in basic.items():
        if value is not None:
            setattr(dataset, name, value)
    if "PixelData" not in elements:
        values = np.arange(int(dataset.Rows) * int(dataset.Columns), dtype=np.uint16) % 4000
        dataset.PixelData = values.tobytes()
    dataset.add_new((0x0029, 0x0010), "LO", "SECRET VENDOR")
    dataset.add_new((0x0029, 0x1001), "LO", "DOE^JANE in private")
    return dataset


def save(dataset: Dataset, path: Path) -> Path:
    """Write a data set as a file, its folder too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    dataset.file_meta.MediaStorageSOPInstanceUID = dataset.get("SOPInstanceUID", "1.2")
    dataset.save_as(path, enforce_file_format=True)
    return path


def series(
    folder: Path,
    frames: np.ndarray,
    corners: np.ndarray,
    number: int,
    timed: Callable[[int, int], dict[str, Any]] | None = None,
    **elements: Any,
) -> None:
    """Write (slice, phase, row, column) frames as one series, slice by slice; `corners` are positions.

    `timed` gives the times of a slice and phase; else several phases have trigger times.
    """
    uid, n_phases = generate_uid(), frames.shape[1]
    for k, phase in np.ndindex(*frames.shape[:2]):
        instance = k * n_phases + phase + 1
        times = {"TriggerTime": round(phase * 800.0 / n_phases + k, 2)} if n_phases > 1 else {}
        dataset = header(
            SeriesInstanceUID=uid,
            SeriesNumber=number,
            InstanceNumber=instance,
            Rows=frames.shape[2],
            Columns=frames.shape[3],
            ImagePositionPatient=[round(float(value), 5) for value in corners[k]],
            PixelData=np.ascontiguousarray(frames[k, phase]).astype(np.uint16).tobytes(),
            BitsStored=16,
            HighBit=15,
            **(times if timed is None else timed(k, phase)) | elements,
        )
        save(dataset, folder / f"{number}" / f"IM{instance:05d}")


def healthy(folder: Path, number: int = 900, **elements: Any) -> None:
    """Write a short-axis cine: a disc that contracts."""
    corners = np.array([k * 8.0 * -NORMAL for k in range(6)])
    series(
        folder,
        contracting(),
        corners,
        number,
        ImageOrientationPatient=SHORT_AXIS,
        **CINE | elements,
    )
