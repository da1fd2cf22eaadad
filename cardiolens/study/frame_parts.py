"""Read frames of a store, volume by volume; every pixel read is checked against its digest."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self, TypedDict

import pyarrow as pa
import pyarrow.parquet as pq

from cardiolens.base.errors import InputError
from cardiolens.storage import schemas, tables
from cardiolens.study.shards import FRAMES_FOLDER, REMEDY, FrameDigest, StoredFrame, pixel_digest

_IDENTITY = ("study_id", "volume_id", "idx")


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
        names = [*_IDENTITY, "digest", "height", "width"]
        return {
            (row["volume_id"], row["idx"]): FrameDigest(row["digest"], row["height"], row["width"])
            for place in places_of(volumes)
            for row in self._row_group(place, names).to_pylist()
        }

    def frames(self, studies: Iterable[WantedFrames]) -> Iterator[list[StoredFrame]]:
        """Yield some `frames` rows of each study in turn, in the order of its volumes and of their indices.

        InputError if a frame is not there, or if pixels do not match their digest.
        """
        for volumes, frames_of in studies:
            places = {place["volume_id"]: place for place in volumes}
            by_volume = {name: sorted(set(indices)) for name, indices in frames_of.items() if indices}
            if absent := by_volume.keys() - places.keys():
                raise InputError(f"no volume {sorted(absent)} in the prepared study; prepare and plan again")
            yield [
                row
                for name in places
                if name in by_volume
                for row in self._frames(places[name], by_volume[name])
            ]

    def _frames(self, place: VolumePlace, indices: Sequence[int]) -> list[StoredFrame]:
        stored = self._row_group(place)
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

    def _row_group(self, place: VolumePlace, columns: Sequence[str] | None = None) -> pa.Table:
        """Read the frames of a volume, in order of idx; InputError unless its row group holds just these."""
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
