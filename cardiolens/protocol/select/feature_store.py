"""Feature store: features computed once per frame and read study by study.

`store/features/v2/<part>` holds the features of the studies of `store/frames/<part>`; a changed
study gets a new part, so its features are recomputed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.protocol.select.features import ALGORITHMS, distances, volume_features
from cardiolens.protocol.select.selection import Frame, Volumes, pick_idx
from cardiolens.storage import schemas, tables
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import read_cohort
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import Study
from cardiolens.study.shards import FRAMES_FOLDER, VOLUMES_FOLDER
from cardiolens.study.structure import StudyStructure, structures

KEY = "v2"  # of the features; changes with their definition and with FEATURES
FEATURES = pa.schema(
    [("study_id", pa.string()), ("volume_id", pa.string()), ("features", pa.binary())],  # by canonical index
    metadata={"table": "features", "version": "3"},
)
_PLACE, _PIXELS = ["study_id", "volume_id"], ["height", "width", "pixels"]


class StudyFeatures:
    """The distances between the frames of a study, and the frames that an algorithm picks by them."""

    def __init__(self, vectors: dict[str, NDArray[np.float32]], anatomy: Anatomy | None = None) -> None:
        volumes = sorted(vectors, key=(anatomy or heart()).volume_ids.index)  # in the order shown
        starts = np.cumsum([0, *(len(vectors[volume_id]) for volume_id in volumes)]).tolist()
        self._starts = dict(zip(volumes, starts, strict=False))
        self._distances = distances(np.concatenate([vectors[volume_id] for volume_id in volumes]))
        self._picked = lru_cache(maxsize=256)(self._pick)

    def picked(self, algorithm: str, pool: Volumes, budget: int) -> tuple[Frame, ...]:
        """Pick frames from a pool by an algorithm, independent of the order of its volumes."""
        in_order = sorted(pool, key=lambda volume: self._starts[volume.volume_id])
        return self._picked(algorithm, tuple(in_order), budget)

    def _pick(self, algorithm: str, pool: Volumes, budget: int) -> tuple[Frame, ...]:
        frames = [pick_idx(volume, idx) for volume in pool for idx in range(volume.n_frames)]
        if budget >= len(frames):
            return tuple(frames)
        rows = np.array([self._starts[frame.volume_id] + frame.idx for frame in frames], np.int64)
        places = ALGORITHMS[algorithm](self._distances[np.ix_(rows, rows)], budget)
        return tuple(frames[place] for place in places)


def missing_parts(store: Path, volumes: pa.Table) -> list[str]:
    """Return the parts of `volumes` rows without computed features."""
    parts = sorted(set(volumes["part"].to_pylist()))
    return [part for part in parts if not (_folder(store) / part).is_file()]


def write_features(store: Path, part: str) -> None:
    """Compute the features of every frame of one part, volume by volume."""
    columns = [*_PLACE, "row_group", "sequence", "n_phases"]
    volumes = tables.read_part(store / VOLUMES_FOLDER / part, schemas.VOLUMES, columns).to_pylist()
    cohort = read_cohort(store)
    anatomy = heart() if cohort is None else cohort.organ
    with (
        disk.atomic(_folder(store) / part) as temporary,
        tables.open_part(store / FRAMES_FOLDER / part) as frames,
        pq.ParquetWriter(
            temporary, FEATURES, compression="zstd", use_dictionary=_PLACE, write_page_checksum=True
        ) as writer,
    ):
        for volume in volumes:
            rows = frames.read_row_group(volume["row_group"], _PIXELS, use_threads=False)
            size = rows["height"][0].as_py(), rows["width"][0].as_py()
            pixels = np.frombuffer(b"".join(rows["pixels"].to_pylist()), np.uint8).reshape(-1, *size)
            cyclic = anatomy.sequences[volume["sequence"]].over_time == "cycle"
            place = {name: volume[name] for name in _PLACE}
            vectors = volume_features(pixels, volume["n_phases"], cyclic=cyclic)
            table = [{**place, "features": vector.tobytes()} for vector in vectors]
            writer.write_table(pa.Table.from_pylist(table, FEATURES), row_group_size=len(table))


def read_features(store: Path, volumes: pa.Table, anatomy: Anatomy | None = None) -> StudyFeatures:
    """Read the features of one study; `volumes` are its rows from read_volumes, all of one part."""
    path = _folder(store) / volumes["part"][0].as_py()
    columns, own = ["volume_id", "features"], pc.field("study_id") == volumes["study_id"][0]
    try:
        rows = pq.read_table(path, columns=columns, filters=own, page_checksum_verification=True)
    except tables.UNREADABLE as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path}: features of the frames are missing or not whole ({reason}); prepare again"
        ) from None
    vectors: dict[str, list[NDArray[np.float32]]] = {}
    for volume_id, packed in zip(*(rows[name].to_pylist() for name in columns), strict=True):
        vectors.setdefault(volume_id, []).append(np.frombuffer(packed, np.float32))
    return StudyFeatures({name: np.stack(of_volume) for name, of_volume in vectors.items()}, anatomy)


def _folder(store: Path) -> Path:
    return store / "features" / KEY


Pixels = Mapping[str, NDArray[np.uint8]]  # (frames, rows, columns) by volume_id


@dataclass(frozen=True, slots=True)
class LookedAt:
    """A study's structure and the pixels of its frames as displayed."""

    structure: StudyStructure
    pixels: Pixels

    def features(self) -> StudyFeatures:
        """Compute the study's features for data-driven selectors."""
        volumes = self.structure.volumes
        vectors = {
            name: volume_features(frames, volumes[name].n_phases, cyclic=volumes[name].over_time == "cycle")
            for name, frames in self.pixels.items()
        }
        return StudyFeatures(vectors, next(iter(volumes.values())).anatomy)


def look_at(study: Study, windows: Windows) -> LookedAt:
    """Read a study with all pixels."""
    rows, pixels = [], {}
    for volume in displayed_volumes(study, windows):
        rows.append(volume.row)
        pixels[volume.row["volume_id"]] = volume.frames
    return LookedAt(structures(pa.Table.from_pylist(rows), study.anatomy)[study.study_id], pixels)
