"""Feature store: features computed once per frame and read study by study.

`store/features/v1/<part>` has the row groups of `store/frames/<part>`; a changed study gets a new frames
part, so its features are recomputed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.protocol.select.features import ALGORITHMS, VERSION, distances, volume_features
from cardiolens.protocol.select.selection import Frame, Volumes, pick_idx
from cardiolens.storage import schemas, tables
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import read_cohort
from cardiolens.study.group import displayed_volumes
from cardiolens.study.manifest import Study
from cardiolens.study.shards import FRAMES_FOLDER, VOLUMES_FOLDER
from cardiolens.study.structure import StudyStructure, structures

KEY = f"v{VERSION}"  # of the features; changes with their definition
FEATURES = pa.schema(
    [("idx", pa.int32()), ("digest", pa.string()), ("features", pa.binary())],
    metadata={"table": "features", "version": "2"},
)
_COLUMNS = ("idx", "height", "width", "pixels", "digest")


class StudyFeatures:
    """The distances between the frames of a study, and the frames that an algorithm picks by them."""

    def __init__(self, vectors: dict[str, NDArray[np.float32]], anatomy: Anatomy | None = None) -> None:
        self._canonical = (anatomy or heart()).volume_ids.index  # place of a volume in the order shown
        volumes = sorted(vectors, key=self._canonical)
        starts = np.cumsum([0, *(len(vectors[volume_id]) for volume_id in volumes)]).tolist()
        self._starts = dict(zip(volumes, starts, strict=False))
        self._distances = distances(np.concatenate([vectors[volume_id] for volume_id in volumes]))
        self._picked = lru_cache(maxsize=256)(self._pick)

    def picked(self, algorithm: str, pool: Volumes, budget: int) -> tuple[Frame, ...]:
        """Pick frames from a pool by an algorithm, independent of the order of its volumes."""
        in_order = sorted(pool, key=lambda volume: self._canonical(volume.volume_id))
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
    columns = ["row_group", "sequence", "n_phases"]
    rows = tables.read_part(store / VOLUMES_FOLDER / part, schemas.VOLUMES, columns).to_pylist()
    row_of = {row["row_group"]: row for row in rows}  # a study that was dropped has frames but no volumes
    cohort = read_cohort(store)
    anatomy = heart() if cohort is None else cohort.organ
    with (
        disk.atomic(_folder(store) / part) as temporary,
        tables.open_part(store / FRAMES_FOLDER / part) as frames,
        pq.ParquetWriter(
            temporary, FEATURES, compression="zstd", use_dictionary=False, write_page_checksum=True
        ) as writer,
    ):
        for group in range(frames.num_row_groups):
            row = row_of.get(group)
            features = FEATURES.empty_table() if row is None else _computed(frames, group, row, anatomy)
            writer.write_table(features, row_group_size=max(1, features.num_rows))


def read_features(store: Path, volumes: pa.Table, anatomy: Anatomy | None = None) -> StudyFeatures:
    """Read the features of one study; `volumes` are its rows from read_volumes."""
    vectors = {}
    for place in volumes.select(["part", "row_group", "volume_id"]).to_pylist():
        path = _folder(store) / place["part"]
        try:
            with tables.open_part(path) as part:
                rows = part.read_row_group(place["row_group"], columns=["idx", "features"], use_threads=False)
        except tables.UNREADABLE as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{path}: features of the frames are missing or not whole ({reason}); prepare again"
            ) from None
        stored = np.frombuffer(b"".join(rows["features"].to_pylist()), np.float32)
        vectors[place["volume_id"]] = stored.reshape(rows.num_rows, -1)[np.argsort(rows["idx"].to_numpy())]
    return StudyFeatures(vectors, anatomy)


def _computed(frames: pq.ParquetFile, group: int, row: dict[str, Any], anatomy: Anatomy) -> pa.Table:
    table = frames.read_row_group(group, columns=list(_COLUMNS), use_threads=False).sort_by("idx")
    height, width = table["height"][0].as_py(), table["width"][0].as_py()
    pixels = np.frombuffer(b"".join(table["pixels"].to_pylist()), np.uint8)
    frames_FHW = pixels.reshape(table.num_rows, height, width, -1)[..., 0]
    kind = anatomy.sequences.get(row["sequence"])  # None: images of a case
    cyclic = kind is not None and kind.over_time == "cycle"
    vectors = volume_features(frames_FHW, row["n_phases"], cyclic=cyclic)
    packed = pa.array([vector.tobytes() for vector in vectors], pa.binary())
    return pa.table([table["idx"], table["digest"], packed], schema=FEATURES)


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
    for volume in displayed_volumes(study, windows):  # one in memory at a time
        rows.append(volume.row)
        height, width = (int(str(volume.row[side])) for side in ("height", "width"))
        joined = b"".join(volume.frames.sort_by("idx")["pixels"].to_pylist())
        pixels[str(volume.row["volume_id"])] = np.frombuffer(joined, np.uint8).reshape(-1, height, width)
    return LookedAt(structures(pa.Table.from_pylist(rows), study.anatomy)[study.study_id], pixels)
