"""Shards of a store: part files of frames and volumes, with one row group per volume.

The frames part `store/frames/part-<id>.parquet` is written first, then the volumes part of the same name, and
`store/cohort.json` last. Readers use only rows with a study and part of the cohort, so they never see rows of
an interrupted or replaced preparation.
"""

import hashlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, Self, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import StudyRecord, read_cohort
from cardiolens.study.shard_checks import REMEDY, check_group, check_volumes

FRAMES_FOLDER = "frames"
VOLUMES_FOLDER = "volumes"

_PLACE = ["part", "row_group", "study_id", "volume_id", "n_slices", "n_phases"]
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
    parts_of = {study_id: record.part for study_id, record in cohort.studies.items()}
    current = []
    for part in sorted(set(parts_of.values())):
        path = store / VOLUMES_FOLDER / part
        rows = tables.read_part(path, schemas.VOLUMES)
        prepared = {name for name, part_name in parts_of.items() if part_name == part}
        check_volumes(path, rows, prepared, cohort.organ)
        mask = [parts_of.get(study_id) == part for study_id in rows["study_id"].to_pylist()]
        current.append(rows.filter(pa.array(mask, pa.bool_())))
    volumes = tables.concat(current, schemas.VOLUMES)
    return volumes.sort_by([("study_id", "ascending"), ("volume_id", "ascending")])


class FrameParts:
    """Parts of the `frames` of a store, to read one study after another.

    The part read last stays open: to open one costs more than to read a small study.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._opened: tuple[Path, pq.ParquetFile] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()

    def digests(self, volumes: pa.Table) -> dict[tuple[str, int], FrameDigest]:
        """Read digest and size of every frame of one study, by (volume_id, idx); no pixel is read.

        `volumes` holds the rows of the study from `read_volumes`.
        """
        digests: dict[tuple[str, int], FrameDigest] = {}
        for volume_id, frames in self._row_groups(volumes, ["idx", "digest", "height", "width"]):
            columns = [frames[name].to_pylist() for name in ("idx", "digest", "height", "width")]
            for idx, digest, height, width in zip(*columns, strict=True):
                digests[volume_id, idx] = FrameDigest(digest, height, width)
        return digests

    def frames(self, volumes: pa.Table, frames_of: Mapping[str, Collection[int]]) -> pa.Table:
        """Read some `frames` rows of one study; `frames_of` holds their indices by volume_id.

        `volumes` holds the rows of the study from `read_volumes`. Other volumes are not read. InputError if
        pixels do not match their digest.
        """
        indices_of = {volume_id: sorted(set(indices)) for volume_id, indices in frames_of.items() if indices}
        is_wanted = [v in indices_of for v in volumes["volume_id"].to_pylist()]
        rows = volumes if all(is_wanted) else volumes.filter(pa.array(is_wanted, pa.bool_()))
        chosen = [_taken(frames, indices_of[v], v) for v, frames in self._row_groups(rows)]
        for frames in chosen:
            _check_pixels(self._store / FRAMES_FOLDER / rows["part"][0].as_py(), frames)
        if len(chosen) != len(indices_of):
            raise InputError(f"no volume {sorted(indices_of)} in the prepared study; prepare and plan again")
        return tables.concat(chosen, schemas.FRAMES)

    def _row_groups(
        self, volumes: pa.Table, columns: Sequence[str] | None = None
    ) -> Iterator[tuple[str, pa.Table]]:
        """Yield the id and the row group of each volume, restricted to `columns` if given."""
        for place in volumes.select(_PLACE).to_pylist():
            path = self._store / FRAMES_FOLDER / place["part"]
            try:
                part = self._open(path)
                check_group(path, part.metadata, place)
                frames = part.read_row_group(place["row_group"], columns=columns, use_threads=False)
            except tables.UNREADABLE as error:
                reason = str(error).splitlines()[0]
                raise InputError(
                    f"{path}: is missing or not whole ({reason}); delete it and prepare again"
                ) from None
            yield place["volume_id"], frames

    def _open(self, path: Path) -> pq.ParquetFile:
        if self._opened is None or self._opened[0] != path:
            self._close()
            self._opened = path, tables.open_part(path)
            tables.check_columns(path, self._opened[1].schema_arrow, schemas.FRAMES)
        return self._opened[1]

    def _close(self) -> None:
        if self._opened is not None:
            self._opened[1].close()
            self._opened = None


def read_digests(store: Path, volumes: pa.Table) -> dict[tuple[str, int], FrameDigest]:
    """Read the digests of one study alone, as `FrameParts.digests` does."""
    with FrameParts(store) as parts:
        return parts.digests(volumes)


def read_frames(store: Path, volumes: pa.Table, frames_of: Mapping[str, Collection[int]]) -> pa.Table:
    """Read frames of one study alone, as `FrameParts.frames` does."""
    with FrameParts(store) as parts:
        return parts.frames(volumes, frames_of)


def _check_pixels(path: Path, frames: pa.Table) -> None:
    for row in frames.to_pylist():
        size = row["height"], row["width"], row["channels"]
        pixels = row["pixels"] or b""
        if len(pixels) != math.prod(size) or pixel_digest(pixels, *size) != row["digest"]:
            where = f"frame {row['idx']} of {row['volume_id']} of {row['study_id']}"
            raise InputError(f"{path}: the pixels of {where} are not those of its digest; {REMEDY}")


def _taken(frames: pa.Table, indices: list[int], volume_id: str) -> pa.Table:
    """Return the rows of some frames, in the order of their indices; those of a small study are all."""
    stored = frames["idx"].to_pylist()
    if stored == indices:
        return frames
    at = {idx: row for row, idx in enumerate(stored)}
    if missing := [idx for idx in indices if idx not in at]:
        raise InputError(f"{volume_id}: no frame {missing[0]}; expected idx in 0..{len(at) - 1}; plan again")
    return frames.take(np.array([at[idx] for idx in indices], np.int64))
