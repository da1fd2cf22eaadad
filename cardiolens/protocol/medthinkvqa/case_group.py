"""Prepare a group of cases into one part of the shards, in one worker."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.protocol.medthinkvqa.case import CaseImage, Pictured, field_of
from cardiolens.protocol.medthinkvqa.case_picture import pixels_of
from cardiolens.protocol.medthinkvqa.files import Source, image_bytes, sha256_of_bytes
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import FileRecord, Stamp, StudyRecord, stamp
from cardiolens.study.group import Outcome
from cardiolens.study.sequences import CASE_IMAGES
from cardiolens.study.shards import PartWriter, part_writer, pixel_digest

_RULES = 1  # version of decoding; increment when it gives other pixels for the same file
_FULL = 255.0


def prepare_cases(
    store: Path, part: str, source: Source, cases: Sequence[Pictured], *, strict: bool
) -> list[Outcome]:
    """Decode the images of cases into one part; `strict` stops at the first failure."""
    outcomes: list[Outcome] = []
    with part_writer(store, part) as writer:
        for case in cases:
            outcomes.append(_attempt(writer, source, case))
            if strict and outcomes[-1].error:
                break
    return outcomes


def digest_of_case(source: Source, case: Pictured) -> str:
    """Return the digest of the inputs of a case's frames and subgroups, except its image files."""
    images = [[image.number, image.path] for image in case.images]
    digest = _stamp_of_file(source) if any(not image.path for image in case.images) else None
    return digest_of([_RULES, source.name_of(case.number), images, dict(case.subgroups), digest])


def _stamp_of_file(source: Source) -> list[int] | None:
    """Return the stamp of a Parquet file with embedded images, to detect changes of these."""
    file_stamp = stamp(source.path)
    return (
        None
        if file_stamp is None
        else [file_stamp.size, file_stamp.mtime_ns, file_stamp.ctime_ns, file_stamp.inode]
    )


def is_current(source: Source, case: Pictured, record: StudyRecord) -> bool:
    """Return whether a case is unchanged since its record was made, without reading images."""
    return record.manifest_sha256 == digest_of_case(source, case) and all(
        stamp(source.root / path) == file.stamp for path, file in record.files.items()
    )


def _attempt(writer: PartWriter, source: Source, case: Pictured) -> Outcome:
    name = source.name_of(case.number)
    stamps = {image.path: stamp(source.root / image.path) for image in case.images if image.path}
    files: dict[str, FileRecord] = {}
    frames: list[NDArray[np.uint8]] = []
    n_bytes = 0
    try:
        for image in case.images:
            stored, pixels = _decoded(source, case, image)
            n_bytes += len(stored)
            frames.append(pixels)
            _note(files, image, stamps.get(image.path), stored)
        writer.add(_volume_row(name, case, frames), _frame_rows(name, frames))
        writer.end_study(keep=True)
    except InputError as error:
        writer.end_study(keep=False)
        return Outcome(name, error=str(error))
    record = StudyRecord(
        part=writer.part,
        manifest_sha256=digest_of_case(source, case),
        files=files,
        subgroups=dict(case.subgroups),
    )
    return Outcome(name, record, prepared=True, n_bytes=n_bytes)


def _decoded(source: Source, case: Pictured, image: CaseImage) -> tuple[bytes, NDArray[np.uint8]]:
    try:
        stored = image_bytes(source, case.number, image)
        return stored, pixels_of(stored)
    except InputError as error:
        field = f": {field_of(image.number, 'path')}" if source.holds_cases else ""
        where = f"{source.where(case.number)}{field}"
        raise InputError(f"{where}: {image.path or 'the embedded image'} {error}") from None


def _note(files: dict[str, FileRecord], image: CaseImage, file_stamp: Stamp | None, stored: bytes) -> None:
    if file_stamp is not None:
        files[image.path] = FileRecord(stamp=file_stamp, sha256=sha256_of_bytes(stored))


def _volume_row(name: str, case: Pictured, frames: Sequence[NDArray[np.uint8]]) -> dict[str, object]:
    """Return the row of `volumes`; images have no geometry, and no order except their slots."""
    height, width = frames[0].shape[:2]
    return {
        "study_id": name,
        "patient_id": name,
        "cohort": ["full"],
        "species": "human",
        "volume_id": CASE_IMAGES,
        "sequence": CASE_IMAGES,
        "view": CASE_IMAGES,
        "n_slices": len(frames),
        "n_phases": 1,
        "height": height,
        "width": width,
        "spacing_mm": [1.0, 1.0, 1.0],
        "spatial_order": "declared",
        "key_layers": [],
        "ed_phase": 0,
        "es_phase": 0,
        "layout_source": "declared",
        "window_low": 0.0,
        "window_high": _FULL,
        "source_sha256": digest_of([image.path for image in case.images]),
    }


def _frame_rows(name: str, frames: Iterable[NDArray[np.uint8]]) -> pa.Table:
    rows: list[dict[str, object]] = []
    for idx, pixels in enumerate(frames):
        height, width, channels = (*pixels.shape, 1)[:3]
        stored = pixels.tobytes()
        rows.append(
            {
                "study_id": name,
                "volume_id": CASE_IMAGES,
                "idx": idx,
                "slice": idx,
                "phase": 0,
                "height": height,
                "width": width,
                "channels": channels,
                "pixels": stored,
                "digest": pixel_digest(stored, height, width, channels),
            }
        )
    if sum(len(row["pixels"]) for row in rows if isinstance(row["pixels"], bytes)) > np.iinfo(np.int32).max:
        raise InputError("its images take 2 GiB or more; expected less per case; make them smaller")
    return tables.from_rows(rows, schemas.FRAMES)
