"""Features beside the shards: computed once a frame, read a study at a time.

`store/features/v<version>/<part>` has the row groups of `store/frames/<part>`: a changed study gets a new
frames part, and so new features.
"""

from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cardiolens import tables
from cardiolens.errors import InputError
from cardiolens.select.diversity import ALGORITHMS, Floats, distances
from cardiolens.select.features import N_FEATURES, VERSION, volume_features
from cardiolens.select.route import Volumes
from cardiolens.select.rules import rules
from cardiolens.select.selection import Frame, pick_all, pick_idx
from cardiolens.study.shards import FRAMES_FOLDER, VOLUMES_FOLDER

FEATURES = pa.schema(
    [("idx", pa.int32()), ("digest", pa.string()), ("features", pa.binary(N_FEATURES * 4))],
    metadata={"table": "features", "version": VERSION},
)
_PIXELS = ("idx", "height", "width", "pixels", "digest")


class StudyFeatures:
    """What data-driven selectors know of one study: how far its frames are from each other."""

    def __init__(self, vectors: dict[str, NDArray[np.float32]]) -> None:
        self._volumes = sorted(vectors, key=_canonical)
        lengths = [len(vectors[volume_id]) for volume_id in self._volumes]
        self._starts = dict(zip(self._volumes, np.cumsum([0, *lengths]).tolist(), strict=False))
        self._distances = distances(np.concatenate([vectors[volume_id] for volume_id in self._volumes]))
        self._picked = lru_cache(maxsize=256)(self._pick)

    def picked(self, algorithm: str, pool: Volumes, budget: int) -> tuple[Frame, ...]:
        """The frames that an algorithm picks from a pool, whatever the order in which its volumes come."""
        return self._picked(
            algorithm, tuple(sorted(pool, key=lambda volume: _canonical(volume.volume_id))), budget
        )

    def _pick(self, algorithm: str, pool: Volumes, budget: int) -> tuple[Frame, ...]:
        if budget >= sum(volume.n_frames for volume in pool):
            return tuple(frame for volume in pool for frame in pick_all(volume, range(volume.n_frames)))
        owners = [(volume, idx) for volume in pool for idx in range(volume.n_frames)]
        rows = np.array([self._starts[volume.volume_id] + idx for volume, idx in owners], np.int64)
        among: Floats = self._distances[np.ix_(rows, rows)]
        chosen = (owners[place] for place in ALGORITHMS[algorithm](among, budget))
        return tuple(pick_idx(volume, idx) for volume, idx in chosen)


def _canonical(volume_id: str) -> int:
    return [view for views in rules().views.values() for view in views].index(volume_id)


def missing_parts(store: Path, volumes: pa.Table) -> list[str]:
    """Parts of these `volumes` rows whose features are not computed yet."""
    parts = sorted(set(volumes["part"].to_pylist()))
    return [part for part in parts if not (_folder(store) / part).is_file()]


def write_features(store: Path, part: str) -> None:
    """Compute the features of every frame of one part, a volume at a time."""
    rows = tables.read_part(
        store / VOLUMES_FOLDER / part, tables.VOLUMES, ["row_group", "sequence", "n_phases"]
    )
    with (
        tables.atomic(_folder(store) / part) as beside,
        pq.ParquetFile(store / FRAMES_FOLDER / part) as frames,
        pq.ParquetWriter(beside, FEATURES, compression="zstd", use_dictionary=False) as writer,
    ):
        wanted = {row["row_group"]: row for row in rows.to_pylist()}
        for group in range(frames.num_row_groups):
            row = wanted.get(group)  # a study that was not kept has frames and no volumes
            found = FEATURES.empty_table() if row is None else _computed(frames, group, row)
            writer.write_table(found, row_group_size=max(1, found.num_rows))


def read_features(store: Path, volumes: pa.Table) -> StudyFeatures:
    """The features of one study; `volumes` are its rows as read_volumes gives them."""
    vectors = {}
    for place in volumes.select(["part", "row_group", "volume_id"]).to_pylist():
        path = _folder(store) / place["part"]
        try:
            with pq.ParquetFile(path) as part:
                rows = part.read_row_group(place["row_group"], columns=["idx", "features"], use_threads=False)
        except (pa.ArrowInvalid, OSError) as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{path}: features of the frames are not there or not whole ({reason}); prepare again"
            ) from None
        found = np.frombuffer(b"".join(rows["features"].to_pylist()), np.float32).reshape(-1, N_FEATURES)
        vectors[place["volume_id"]] = found[np.argsort(rows["idx"].to_numpy())]
    return StudyFeatures(vectors)


def _computed(frames: pq.ParquetFile, group: int, row: dict[str, object]) -> pa.Table:
    table = frames.read_row_group(group, columns=list(_PIXELS), use_threads=False).sort_by("idx")
    height, width = table["height"][0].as_py(), table["width"][0].as_py()
    pixels = np.frombuffer(b"".join(table["pixels"].to_pylist()), np.uint8)
    frames_FHW = pixels.reshape(table.num_rows, height, width, -1)[..., 0]
    vectors = volume_features(frames_FHW, int(str(row["n_phases"])), cyclic=row["sequence"] == "cine")
    packed = pa.array([vector.tobytes() for vector in vectors], pa.binary(N_FEATURES * 4))
    return pa.table([table["idx"], table["digest"], packed], schema=FEATURES)


def _folder(store: Path) -> Path:
    return store / "features" / f"v{VERSION}"
