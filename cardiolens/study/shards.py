"""Shards of a store: part files of frames and volumes, with one row group per volume.

The frames part `store/frames/part-<id>.parquet` is written first, then the volumes part of the same name, and
`store/cohort.json` last. Readers use only rows with a study and part of the cohort, so they never see rows of
an interrupted or replaced preparation.
"""

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import StudyRecord, read_cohort

REMEDY = "it was damaged or changed by hand: delete it and prepare again"
FRAMES_FOLDER = "frames"
VOLUMES_FOLDER = "volumes"

_SMALL_COLUMNS = ["study_id", "volume_id", "idx", "slice", "phase", "height", "width", "channels"]


class StoredFrame(TypedDict):
    """A row of the `frames` table."""

    study_id: str
    volume_id: str
    idx: int
    slice: int
    phase: int
    height: int
    width: int
    channels: int
    pixels: bytes
    digest: str


class FrameDigest(NamedTuple):
    """Digest of a frame's pixels, and its size as displayed."""

    digest: str
    height: int
    width: int


def shaped(pixels: bytes | memoryview, height: int, width: int, channels: int) -> NDArray[np.uint8]:
    """View pixels as an array, without copying: (height, width) if grey, (height, width, 3) if RGB."""
    size = (height, width) if channels == 1 else (height, width, channels)
    return np.frombuffer(pixels, np.uint8).reshape(size)


def pixel_digest(pixels: bytes | memoryview, height: int, width: int, channels: int) -> str:
    """Return the digest of a frame: BLAKE2b-128 of "height,width,channels:" and the pixels, in hex."""
    state = hashlib.blake2b(f"{height},{width},{channels}:".encode(), digest_size=16)
    state.update(pixels)
    return state.hexdigest()


class PartWriter:
    """Writer of one part: row groups of frames, and the rows of `volumes` of complete studies."""

    def __init__(self, part: str, writer: pq.ParquetWriter) -> None:
        self.rows: list[dict[str, object]] = []
        self.part = part
        self._writer = writer
        self._row_groups = 0
        self._study: list[dict[str, object]] = []

    def add(self, volume_row: Mapping[str, object], frames: pa.Table) -> None:
        """Write the frames of one volume as one row group."""
        self._writer.write_table(frames, row_group_size=frames.num_rows)
        self._study.append({**volume_row, "part": self.part, "row_group": self._row_groups})
        self._row_groups += 1

    def end_study(self, *, keep: bool) -> None:
        """End a study: keep or drop the rows of all volumes added since the last call."""
        self.rows += self._study if keep else []
        self._study = []


class _NothingKeptError(Exception):
    """Raised if no study of a part is complete."""


@contextmanager
def part_writer(store: Path, part: str) -> Iterator[PartWriter]:
    """Write one part of both tables; no file appears if no study was kept or an error was raised."""
    try:
        with (
            disk.atomic(store / FRAMES_FOLDER / part) as temporary,
            pq.ParquetWriter(
                temporary,
                schemas.FRAMES,
                compression="zstd",
                use_dictionary=["study_id", "volume_id"],
                write_statistics=_SMALL_COLUMNS,
                write_page_checksum=True,
            ) as parquet,
        ):
            writer = PartWriter(part, parquet)
            yield writer
            if not writer.rows:
                raise _NothingKeptError
    except _NothingKeptError:
        return
    volumes = tables.from_rows(writer.rows, schemas.VOLUMES)
    tables.write_part(store / VOLUMES_FOLDER, volumes, schemas.VOLUMES, name=part)


def holds_part(store: Path, record: StudyRecord) -> bool:
    """Return whether both files of a prepared study's part exist."""
    return all((store / folder / record.part).is_file() for folder in (FRAMES_FOLDER, VOLUMES_FOLDER))


def read_volumes(store: Path) -> pa.Table:
    """Read the `volumes` rows of the current cohort, sorted by study_id and volume_id."""
    cohort = read_cohort(store)
    if cohort is None:
        raise InputError(
            f"{store}: holds no prepared studies; run python -m cardiolens.prepare with the same dataset"
        )
    studies_of: dict[str, list[str]] = {}
    for study_id, record in cohort.studies.items():
        studies_of.setdefault(record.part, []).append(study_id)
    current = []
    for part, studies in sorted(studies_of.items()):
        path = store / VOLUMES_FOLDER / part
        rows = tables.read_part(path, schemas.VOLUMES)
        if absent := sorted(set(studies) - set(rows["study_id"].to_pylist())):
            raise InputError(
                f"{path}: holds no volume of study {absent[0]}, which cohort.json names; {REMEDY}"
            )
        current.append(rows.filter(pc.is_in(rows["study_id"], pa.array(studies, pa.string()))))
    volumes = tables.concat(current, schemas.VOLUMES)
    return volumes.sort_by([("study_id", "ascending"), ("volume_id", "ascending")])
