"""Read frames of a store: volumes of one part after another, small ones together."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain, groupby, islice
from pathlib import Path
from typing import NamedTuple, Self, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.base.errors import InputError
from cardiolens.storage import schemas, tables
from cardiolens.study.shards import FRAMES_FOLDER, REMEDY, FrameDigest, StoredFrame, check_group, pixel_digest

READ_BYTES = 4 << 20  # of row groups that are read in one call


class VolumePlace(TypedDict):
    """Where the frames of a volume are stored; some columns of its row of `volumes`."""

    part: str
    row_group: int
    study_id: str
    volume_id: str
    n_slices: int
    n_phases: int


class WantedFrames(NamedTuple):
    """Frames to read of one study: its volumes, and the indices by volume_id."""

    volumes: Sequence[VolumePlace]
    frames_of: Mapping[str, Collection[int]]


class _WantedGroup(NamedTuple):
    """Frames to read of one row group, by ascending index."""

    place: VolumePlace
    indices: list[int]


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
        for place in places_of(volumes):
            path = self._path(place["part"])
            with _whole(path):
                self._size(path, place)
                frames = self._row_groups(path, [place], ["idx", "digest", "height", "width"])
            columns = [frames[name].to_pylist() for name in ("idx", "digest", "height", "width")]
            for idx, digest, height, width in zip(*columns, strict=True):
                digests[place["volume_id"], idx] = FrameDigest(digest, height, width)
        return digests

    def frames(self, studies: Sequence[WantedFrames]) -> Iterator[list[StoredFrame]]:
        """Yield some `frames` rows of each study in turn, in the order of its volumes and of their indices.

        Small volumes that follow one another are read together; a volume of which nothing is wanted is not
        read. InputError if a frame is not there, or if pixels do not match their digest.
        """
        groups_of = [_wanted_groups(study) for study in studies]
        frames = self._frames(chain.from_iterable(groups_of))
        for groups in groups_of:
            yield [frame for _ in groups for frame in next(frames)]

    def _frames(self, groups: Iterable[_WantedGroup]) -> Iterator[list[StoredFrame]]:
        """Yield the wanted rows of each row group."""
        for part, of_part in groupby(groups, key=lambda group: group.place["part"]):
            path = self._path(part)
            for run in self._runs(path, of_part):
                with _whole(path):
                    stored = self._row_groups(path, [group.place for group in run])
                rows: list[StoredFrame] = _taken(stored, run).to_pylist()
                _check_pixels(path, rows)
                remaining = iter(rows)
                for group in run:
                    yield list(islice(remaining, len(group.indices)))

    def _runs(self, path: Path, groups: Iterable[_WantedGroup]) -> Iterator[list[_WantedGroup]]:
        """Divide row groups of one part into runs of at most `READ_BYTES`, or of one."""
        run: list[_WantedGroup] = []
        run_bytes = 0
        for group in groups:
            with _whole(path):
                size = self._size(path, group.place)
            if run and run_bytes + size > READ_BYTES:
                yield run
                run, run_bytes = [], 0
            run.append(group)
            run_bytes += size
        if run:
            yield run

    def _row_groups(
        self, path: Path, places: Sequence[VolumePlace], columns: Sequence[str] | None = None
    ) -> pa.Table:
        numbers = [place["row_group"] for place in places]
        return self._open(path).read_row_groups(numbers, columns=columns, use_threads=False)

    def _size(self, path: Path, place: VolumePlace) -> int:
        """Return the bytes of a volume's row group, after a check that it is the volume's."""
        size: int = check_group(path, self._open(path).metadata, place).total_byte_size
        return size

    def _path(self, part: str) -> Path:
        return self._store / FRAMES_FOLDER / part

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


def places_of(volumes: pa.Table) -> list[VolumePlace]:
    """Return where volumes are stored; `volumes` holds rows from `read_volumes`."""
    places: list[VolumePlace] = volumes.select(list(VolumePlace.__annotations__)).to_pylist()
    return places


def read_digests(store: Path, volumes: pa.Table) -> dict[tuple[str, int], FrameDigest]:
    """Read the digests of one study alone, as `FrameParts.digests` does."""
    with FrameParts(store) as parts:
        return parts.digests(volumes)


def read_frames(
    store: Path, volumes: pa.Table, frames_of: Mapping[str, Collection[int]]
) -> list[StoredFrame]:
    """Read frames of one study alone, as `FrameParts.frames` does; `volumes` holds its rows."""
    with FrameParts(store) as parts:
        return next(parts.frames([WantedFrames(places_of(volumes), frames_of)]))


@contextmanager
def _whole(path: Path) -> Iterator[None]:
    """Turn what Arrow raises of a part that cannot be read into an InputError."""
    try:
        yield
    except tables.UNREADABLE as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{path}: is missing or not whole ({reason}); delete it and prepare again") from None


def _wanted_groups(study: WantedFrames) -> list[_WantedGroup]:
    indices_of = {
        volume_id: sorted(set(indices)) for volume_id, indices in study.frames_of.items() if indices
    }
    groups = [
        _WantedGroup(place, indices_of[place["volume_id"]])
        for place in study.volumes
        if place["volume_id"] in indices_of
    ]
    if len(groups) != len(indices_of):
        raise InputError(f"no volume {sorted(indices_of)} in the prepared study; prepare and plan again")
    return groups


def _check_pixels(path: Path, rows: Iterable[StoredFrame]) -> None:
    for row in rows:
        size = row["height"], row["width"], row["channels"]
        pixels = row["pixels"] or b""
        if len(pixels) != math.prod(size) or pixel_digest(pixels, *size) != row["digest"]:
            where = f"frame {row['idx']} of {row['volume_id']} of {row['study_id']}"
            raise InputError(f"{path}: the pixels of {where} are not those of its digest; {REMEDY}")


def _taken(stored: pa.Table, groups: Sequence[_WantedGroup]) -> pa.Table:
    """Return the rows that are wanted of row groups which `stored` holds one after another."""
    idx_of_rows = stored["idx"].to_pylist()
    rows: list[int] = []
    first = 0
    for place, indices in groups:
        end = first + place["n_slices"] * place["n_phases"]
        at = {idx: row for row, idx in enumerate(idx_of_rows[first:end], first)}
        if missing := [idx for idx in indices if idx not in at]:
            raise InputError(
                f"{place['volume_id']}: no frame {missing[0]}; expected idx in 0..{len(at) - 1}; plan again"
            )
        rows += [at[idx] for idx in indices]
        first = end
    # To take all rows would copy them: of small studies all are wanted.
    return stored if rows == list(range(stored.num_rows)) else stored.take(np.array(rows, np.int64))
