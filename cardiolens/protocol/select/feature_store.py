"""Feature store: features computed once per frame and read study by study.

`store/features/<sight>/<part>` has the row groups of `store/frames/<part>`; a changed study gets a new frames
part, so its features are recomputed.
"""

from collections.abc import Callable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.protocol.select.features import PIXELS, Sight
from cardiolens.protocol.select.route import Volumes
from cardiolens.protocol.select.selection import Frame, pick_all, pick_idx
from cardiolens.storage import schemas, tables
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.cohort import read_cohort
from cardiolens.study.shards import FRAMES_FOLDER, VOLUMES_FOLDER

Floats = NDArray[np.float64]

TIE = 1e-9
_ROUNDS = 20
_LAMBDA = 0.5  # weight of relevance to the question in maximal marginal relevance
_SAME = 1e-12  # smaller squared distances are rounding errors of equal frames


def distances(features: NDArray[np.floating]) -> Floats:
    """Return Euclidean distances of all pairs of rows, (frames, frames) in float64."""
    rows = features.astype(np.float64)
    squares = np.einsum("fd,fd->f", rows, rows)
    squared: Floats = squares[:, None] + squares - 2 * (rows @ rows.T)
    np.fill_diagonal(squared, 0)
    distance: Floats = np.sqrt(np.where(squared < _SAME, 0, squared))
    return distance


def kcenter(distance: Floats, k: int) -> list[int]:
    """Choose the medoid, then repeatedly the frame farthest from all chosen; ties go to the first."""
    chosen = [_first(-distance.sum(axis=1))] if k > 0 else []
    nearest = distance[chosen[0]].copy() if chosen else distance[:0]
    while len(chosen) < min(k, len(distance)):
        nearest[chosen] = -1  # never take a frame twice; take duplicates only when no other frame is left
        chosen.append(_first(nearest))
        np.minimum(nearest, distance[chosen[-1]], out=nearest)
    return chosen


def kmedoids(distance: Floats, k: int) -> list[int]:
    """Improve k-centre frames by best single swaps until none gains, at most 20; sorted ascending."""
    swaps = _Swaps(distance, kcenter(distance, k))
    for _ in range(_ROUNDS):
        frame, place, gain = swaps.best()
        if gain <= TIE:
            break
        swaps.swap(frame, place)
    return sorted(swaps.medoids.tolist())


ALGORITHMS: Mapping[str, Callable[[Floats, int], list[int]]] = {"kcenter": kcenter, "kmedoids": kmedoids}


def relevant(distance: Floats, near: Floats, k: int) -> list[int]:
    """Choose by maximal marginal relevance: repeatedly a frame near the question and unlike the chosen.

    `distance` is between unit vectors, `near` the cosine of each frame and the question; ties go to the
    first. (Carbonell and Goldstein 1998.)
    """
    alike = 1 - distance**2 / 2
    most_alike = np.zeros(len(near))
    chosen: list[int] = []
    while len(chosen) < min(k, len(near)):
        worth = _LAMBDA * near - (1 - _LAMBDA) * most_alike
        worth[chosen] = -np.inf
        chosen.append(_first(worth))
        most_alike = alike[chosen].max(axis=0)
    return chosen


def _first(values: Floats) -> int:
    """Return the first index of the largest value, within the tie tolerance."""
    return int(np.argmax(values >= values.max() - TIE))


class _Swaps:
    """Gains of swapping a medoid for a frame: the fall of the summed distance to the nearest medoid.

    The sums of Schubert and Rousseeuw 2021 (FastPAM1), updated incrementally: a swap recomputes only the
    frames whose two nearest medoids changed.
    """

    def __init__(self, distance: Floats, medoids: list[int]) -> None:
        self.medoids = np.array(medoids, np.int64)
        self._distance = distance
        self._gain = np.zeros(len(distance))  # per new medoid: from frames closer to it
        self._loss = np.zeros((len(medoids), len(distance)))  # (removed, new medoid): from frames left over
        self._nearest = self._two_nearest()
        self._count(np.arange(len(distance)), 1)

    def best(self) -> tuple[int, int, float]:
        """Return the best new frame, the position of the medoid to replace, and the gain; ties: first."""
        places = np.argsort(self.medoids)
        gains = (self._gain - self._loss[places]).T
        gains[self.medoids] = -np.inf
        frame, place = divmod(_first(gains.ravel()), len(places))
        return frame, int(places[place]), float(gains[frame, place])

    def swap(self, frame: int, place: int) -> None:
        """Replace the medoid at a position."""
        self.medoids[place] = frame
        after = self._two_nearest()
        changed = np.flatnonzero((after != self._nearest).any(axis=0))
        self._count(changed, -1)
        self._nearest = after
        self._count(changed, 1)

    def _two_nearest(self) -> Floats:
        """Return position of and distance to the nearest medoid, and distance to the second, (3, frames)."""
        to_medoids = self._distance[self.medoids]
        cluster = to_medoids.argmin(axis=0)
        if len(to_medoids) == 1:
            return np.stack([cluster, to_medoids[0], np.full(len(cluster), np.inf)])
        nearest, second = np.partition(to_medoids, 1, axis=0)[:2]
        return np.stack([cluster, nearest, second])

    def _count(self, frames: NDArray[np.int64], sign: int) -> None:
        cluster, nearest, second = self._nearest[:, frames, None]
        distance = self._distance[frames]
        closer = np.maximum(nearest - distance, 0)
        left_over = np.minimum(distance, second) - nearest + closer
        served_by = (cluster[:, 0] == np.arange(len(self.medoids))[:, None]).astype(np.float64)
        self._gain += sign * closer.sum(axis=0)
        self._loss += sign * (served_by @ left_over)


FEATURES = pa.schema(
    [("idx", pa.int32()), ("digest", pa.string()), ("features", pa.binary())],
    metadata={"table": "features", "version": "2"},
)
_COLUMNS = ("idx", "height", "width", "pixels", "digest")


class StudyFeatures:
    """Features of a study for data-driven selectors: distances between frames, cosines to a question."""

    def __init__(
        self, vectors: dict[str, NDArray[np.float32]], sight: Sight = PIXELS, anatomy: Anatomy | None = None
    ) -> None:
        self._canonical = (anatomy or heart()).volume_ids.index  # place of a volume in the order shown
        self._volumes = sorted(vectors, key=self._canonical)
        lengths = [len(vectors[volume_id]) for volume_id in self._volumes]
        self._starts = dict(zip(self._volumes, np.cumsum([0, *lengths]).tolist(), strict=False))
        rows = np.concatenate([vectors[volume_id] for volume_id in self._volumes])
        self._distances = distances(rows)
        self._sight = sight
        self._vectors = None if sight.encoder is None else rows  # for comparison with questions
        self._picked = lru_cache(maxsize=256)(self._pick)

    def picked(
        self, algorithm: str, pool: Volumes, budget: int, question: str | None = None
    ) -> tuple[Frame, ...]:
        """Pick frames from a pool by an algorithm, independent of the order of its volumes.

        With a question (kind relevance), pick frames near the question and unlike each other.
        """
        in_order = sorted(pool, key=lambda volume: self._canonical(volume.volume_id))
        return self._picked(algorithm, tuple(in_order), budget, question)

    def _pick(self, algorithm: str, pool: Volumes, budget: int, question: str | None) -> tuple[Frame, ...]:
        if budget >= sum(volume.n_frames for volume in pool):
            return tuple(frame for volume in pool for frame in pick_all(volume, range(volume.n_frames)))
        owners = [(volume, idx) for volume in pool for idx in range(volume.n_frames)]
        rows = np.array([self._starts[volume.volume_id] + idx for volume, idx in owners], np.int64)
        among: Floats = self._distances[np.ix_(rows, rows)]
        places = (
            ALGORITHMS[algorithm](among, budget)
            if question is None
            else relevant(among, self._near(rows, question), budget)
        )
        return tuple(pick_idx(volume, idx) for volume, idx in (owners[place] for place in places))

    def _near(self, rows: NDArray[np.int64], question: str) -> Floats:
        """Return the cosine of each frame and the question."""
        assert self._vectors is not None, "kind relevance requires an encoder"
        near: Floats = self._vectors[rows].astype(np.float64) @ self._sight.of_question(question)
        return near


Features = Mapping[Path | None, StudyFeatures]
"""Features of one study by encoder folder; None: from the frames' pixels."""


def missing_parts(store: Path, volumes: pa.Table, sight: Sight = PIXELS) -> list[str]:
    """Return the parts of `volumes` rows without computed features."""
    parts = sorted(set(volumes["part"].to_pylist()))
    return [part for part in parts if not (_folder(store, sight) / part).is_file()]


def write_features(store: Path, part: str, sight: Sight = PIXELS) -> None:
    """Compute the features of every frame of one part, volume by volume."""
    rows = tables.read_part(
        store / VOLUMES_FOLDER / part, schemas.VOLUMES, ["row_group", "sequence", "n_phases"]
    )
    with (
        disk.atomic(_folder(store, sight) / part) as temporary,
        tables.open_part(store / FRAMES_FOLDER / part) as frames,
        pq.ParquetWriter(
            temporary, FEATURES, compression="zstd", use_dictionary=False, write_page_checksum=True
        ) as writer,
    ):
        row_of = {row["row_group"]: row for row in rows.to_pylist()}
        cohort = read_cohort(store)
        anatomy = heart() if cohort is None else cohort.organ
        for group in range(frames.num_row_groups):
            row = row_of.get(group)  # a study that was dropped has frames but no volumes
            features = (
                FEATURES.empty_table() if row is None else _computed(frames, group, row, sight, anatomy)
            )
            writer.write_table(features, row_group_size=max(1, features.num_rows))


def read_features(
    store: Path, volumes: pa.Table, sight: Sight = PIXELS, anatomy: Anatomy | None = None
) -> StudyFeatures:
    """Read the features of one study; `volumes` are its rows from read_volumes."""
    vectors = {}
    for place in volumes.select(["part", "row_group", "volume_id"]).to_pylist():
        path = _folder(store, sight) / place["part"]
        try:
            with tables.open_part(path) as part:
                rows = part.read_row_group(place["row_group"], columns=["idx", "features"], use_threads=False)
        except tables.UNREADABLE as error:
            reason = str(error).splitlines()[0]
            raise InputError(
                f"{path}: features of the frames are missing or not whole ({reason}); prepare again"
            ) from None
        features = np.frombuffer(b"".join(rows["features"].to_pylist()), np.float32).reshape(
            rows.num_rows, -1
        )
        vectors[place["volume_id"]] = features[np.argsort(rows["idx"].to_numpy())]
    return StudyFeatures(vectors, sight, anatomy)


def _computed(
    frames: pq.ParquetFile, group: int, row: dict[str, Any], sight: Sight, anatomy: Anatomy
) -> pa.Table:
    table = frames.read_row_group(group, columns=list(_COLUMNS), use_threads=False).sort_by("idx")
    height, width = table["height"][0].as_py(), table["width"][0].as_py()
    pixels = np.frombuffer(b"".join(table["pixels"].to_pylist()), np.uint8)
    frames_FHW = pixels.reshape(table.num_rows, height, width, -1)[..., 0]
    kind = anatomy.sequences.get(row["sequence"])  # None: images of a case
    cyclic = kind is not None and kind.over_time == "cycle"
    vectors = sight.of_volume(frames_FHW, row["n_phases"], cyclic=cyclic)
    packed = pa.array([vector.tobytes() for vector in vectors], pa.binary())
    return pa.table([table["idx"], table["digest"], packed], schema=FEATURES)


def _folder(store: Path, sight: Sight) -> Path:
    return store / "features" / sight.key
