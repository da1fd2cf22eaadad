"""Shards of a store: part files of frames and volumes, with one row group per volume.

The frames part `store/frames/part-<id>.parquet` is written first, then the volumes part of the same name, and
`store/cohort.json` last. Readers use only rows with a study and part of the cohort, so they never see rows of
an interrupted or replaced preparation. Every pixel read is checked against its digest.
"""

import hashlib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, TypedDict

import numpy as np
import pyarrow as pa
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
    """A row of the `frames` table, without its slice and phase."""

    study_id: str
    volume_id: str
    idx: int
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
    """Writer of one part: the frames of each volume as a row group, and the rows of `volumes` that stay."""

    def __init__(self, part: str, writer: pq.ParquetWriter) -> None:
        self.part = part
        self.rows: list[dict[str, object]] = []  # of whole studies, which the caller adds
        self._writer = writer
        self._row_groups = 0

    def write(self, volume_row: Mapping[str, object], frames: pa.Table) -> dict[str, object]:
        """Write the frames of one volume as one row group; return its row of `volumes` with the place."""
        self._writer.write_table(frames, row_group_size=frames.num_rows)
        self._row_groups += 1
        return {**volume_row, "part": self.part, "row_group": self._row_groups - 1}


def frames_table(volume_row: Mapping[str, Any], frames: Iterable[NDArray[np.uint8]]) -> pa.Table:
    """Return the rows of `frames` of a volume; its frames, grey or RGB, come in canonical order."""
    rows: list[dict[str, object]] = []
    for idx, frame in enumerate(frames):
        rank, phase = divmod(idx, volume_row["n_phases"])
        height, width, channels = (*frame.shape, 1)[:3]
        pixels = frame.tobytes()
        rows.append(
            {
                **{name: volume_row[name] for name in ("study_id", "volume_id")},
                **{"idx": idx, "slice": rank, "phase": phase},
                **{"height": height, "width": width, "channels": channels},
                "pixels": pixels,
                "digest": pixel_digest(pixels, height, width, channels),
            }
        )
    return tables.from_rows(rows, schemas.FRAMES)


class _NothingKeptError(Exception):
    """Raised if no study of a part is whole."""


@contextmanager
def part_writer(store: Path, part: str) -> Iterator[PartWriter]:
    """Write one part of both tables; no file appears if no study was kept or an error was raised."""
    with (
        suppress(_NothingKeptError),
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
    if writer.rows:
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
    part_of = {study_id: record.part for study_id, record in cohort.studies.items()}
    parts = [store / VOLUMES_FOLDER / part for part in sorted(set(part_of.values()))]
    rows = tables.concat((tables.read_part(part, schemas.VOLUMES) for part in parts), schemas.VOLUMES)
    owners = zip(rows["study_id"].to_pylist(), rows["part"].to_pylist(), strict=True)
    current = rows.filter(pa.array([part_of.get(study) == part for study, part in owners], pa.bool_()))
    if absent := sorted(part_of.keys() - set(current["study_id"].to_pylist())):
        raise InputError(
            f"{store / VOLUMES_FOLDER / part_of[absent[0]]}: holds no volume of study {absent[0]}, which "
            f"cohort.json names; {REMEDY}"
        )
    return current.sort_by([("study_id", "ascending"), ("volume_id", "ascending")])


_IDENTITY = ("study_id", "volume_id", "idx")


class VolumePlace(TypedDict):
    """Where the frames of a volume are stored; some columns of its row of `volumes`."""

    part: str
    row_group: int
    study_id: str
    volume_id: str
    n_slices: int
    n_phases: int


class FrameParts:
    """Parts of the `frames` of a store, to read one study after another.

    The part read last stays open: to open one costs more than to read a small study.
    """

    def __init__(self, store: Path) -> None:
        self._store = store
        self._opened: tuple[Path, pq.ParquetFile] | None = None

    def digests(self, volumes: pa.Table) -> dict[tuple[str, int], FrameDigest]:
        """Read digest and size of every frame of one study, by (volume_id, idx); no pixel is read.

        `volumes` holds the rows of the study from `read_volumes`.
        """
        names = [*_IDENTITY, "digest", "height", "width"]
        return {
            (row["volume_id"], row["idx"]): FrameDigest(row["digest"], row["height"], row["width"])
            for place in places_of(volumes)
            for row in self._row_group(place, names).to_pylist()
        }

    def frames(
        self, volumes: Sequence[VolumePlace], frames_of: Mapping[str, Collection[int]]
    ) -> list[StoredFrame]:
        """Read frames of one study, by volume_id and index, in the order of its volumes and of the indices.

        InputError if a frame is not there, or if pixels do not match their digest.
        """
        indices_of = {name: sorted(set(indices)) for name, indices in frames_of.items() if indices}
        if absent := indices_of.keys() - {place["volume_id"] for place in volumes}:
            raise InputError(f"no volume {sorted(absent)} in the prepared study; prepare and plan again")
        places = [place for place in volumes if place["volume_id"] in indices_of]
        return [row for place in places for row in self._frames(place, indices_of[place["volume_id"]])]

    def _frames(self, place: VolumePlace, indices: Sequence[int]) -> list[StoredFrame]:
        stored = self._row_group(place, list(StoredFrame.__annotations__))
        if missing := [idx for idx in indices if not 0 <= idx < stored.num_rows]:
            raise InputError(
                f"{place['volume_id']}: no frame {missing[0]}; expected idx in 0..{stored.num_rows - 1}; "
                "plan again"
            )
        rows: list[StoredFrame] = stored.take(pa.array(indices, pa.int64())).to_pylist()
        for row in rows:
            size = row["height"], row["width"], row["channels"]
            pixels = row["pixels"] or b""
            if len(pixels) != math.prod(size) or pixel_digest(pixels, *size) != row["digest"]:
                raise InputError(
                    f"{self._path(place)}: the pixels of frame {row['idx']} of {row['volume_id']} of "
                    f"{row['study_id']} are not those of its digest; {REMEDY}"
                )
        return rows

    def _row_group(self, place: VolumePlace, columns: Sequence[str]) -> pa.Table:
        """Read columns of a volume's frames, in order of idx; InputError unless its row group holds these."""
        path, n_frames = self._path(place), place["n_slices"] * place["n_phases"]
        try:
            frames = self._open(path).read_row_group(place["row_group"], columns, use_threads=False)
        except tables.UNREADABLE as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{path}: is missing or not whole ({reason}); delete it and prepare again"
            ) from None
        study, volume, idx = (frames[name].to_pylist() for name in _IDENTITY)
        expected = [place["study_id"]] * n_frames, [place["volume_id"]] * n_frames, [*range(n_frames)]
        if (study, volume, idx) != expected:
            raise InputError(
                f"{path}: does not hold the {n_frames} frames of {place['volume_id']} of "
                f"{place['study_id']}; {REMEDY}"
            )
        return frames

    def _path(self, place: VolumePlace) -> Path:
        return self._store / FRAMES_FOLDER / place["part"]

    def _open(self, path: Path) -> pq.ParquetFile:
        if self._opened is None or self._opened[0] != path:
            self._opened = path, tables.open_part(path)
            tables.check_columns(path, self._opened[1].schema_arrow, schemas.FRAMES)
        return self._opened[1]


def places_of(volumes: pa.Table) -> list[VolumePlace]:
    """Return where volumes are stored; `volumes` holds rows from `read_volumes`."""
    places: list[VolumePlace] = volumes.select(list(VolumePlace.__annotations__)).to_pylist()
    return places


def read_frames(
    store: Path, volumes: pa.Table, frames_of: Mapping[str, Collection[int]]
) -> list[StoredFrame]:
    """Read frames of one study alone, as `FrameParts.frames` does; `volumes` holds its rows."""
    return FrameParts(store).frames(places_of(volumes), frames_of)
