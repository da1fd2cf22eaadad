"""Requests that still have to be executed: the anti-join of a plan with the completions that exist."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens import tables
from cardiolens.plan.plan import Plan
from cardiolens.tables import FINAL, PLANNED

WORK = pa.schema(
    [
        ("study_id", pa.string()),  # whose frames are shown
        ("part", pa.string()),  # requests part that holds them
        ("rows", pa.list_(pa.int32())),  # in that part, in the order to ask
        ("attempts", pa.list_(pa.int32())),  # number of the coming try
    ]
)


class StudyWork(TypedDict):
    """A row of WORK."""

    study_id: str
    part: str
    rows: list[int]
    attempts: list[int]


@dataclass(frozen=True, slots=True)
class Done:
    """The state of a model's completions."""

    final: pa.Array  # request keys that need no further try
    failed: dict[str, int]  # tries of those that an engine failed on

    @classmethod
    def of(cls, completions: Path) -> "Done":
        """Read the state from a folder of completions, as it is now."""
        rows = tables.read(completions, tables.COMPLETIONS, ("request_key", "status"))
        is_final = pc.is_in(rows["status"], pa.array(FINAL))
        failed = pc.value_counts(rows.filter(pc.invert(is_final))["request_key"])
        tries = {entry["values"]: entry["counts"] for entry in failed.to_pylist()}
        return cls(pc.unique(rows.filter(is_final)["request_key"]), tries)

    def exhausted(self, max_attempts: int) -> pa.Array:
        """Keys of requests that were tried often enough."""
        return pa.array([key for key, tries in self.failed.items() if tries >= max_attempts], pa.string())


@dataclass(frozen=True, slots=True)
class Missing:
    """Work that is left for one model."""

    work: pa.Table  # WORK: one row per study
    unique: int  # distinct requests planned
    done: int  # of these, with a final completion
    exhausted: int  # of these, failed max_attempts times

    @property
    def left(self) -> int:
        return self.unique - self.done - self.exhausted


def missing(requests: Path, completions: Path, max_attempts: int) -> Missing:
    """Each distinct request without a final completion once, grouped by study.

    Memory: the keys of one part (with controls that show no frames or another patient's, of all parts) and of
    the completions, and four bytes per missing request.
    """
    done = Done.of(completions)
    exhausted = done.exhausted(max_attempts)
    totals = {"unique": 0, "done": 0, "exhausted": 0}
    rows: list[StudyWork] = []
    seen: set[str] | None = set() if _shares_keys(requests) else None
    for part in tables.parts(requests):
        table = tables.read_part(part, tables.REQUESTS, ("frames_study_id", "status", "request_key"))
        fresh = _first_planned(table, seen)
        keys = table["request_key"].take(fresh)
        is_done, is_exhausted = (_among(keys, known) for known in (done.final, exhausted))
        totals["unique"] += len(fresh)
        totals["done"] += int(is_done.sum())
        totals["exhausted"] += int((is_exhausted & ~is_done).sum())
        left = fresh[~(is_done | is_exhausted)]
        rows += _by_study(part, table, left, done.failed)
    return Missing(pa.Table.from_pylist(rows, schema=WORK), **totals)


def _first_planned(table: pa.Table, seen: set[str] | None) -> np.ndarray:
    """Rows that ask something for the first time; `seen` collects the keys of earlier parts."""
    planned = np.flatnonzero(np.asarray(pc.equal(table["status"], PLANNED)))
    keys = table["request_key"].take(planned).combine_chunks().dictionary_encode()
    _, first = np.unique(np.asarray(keys.indices), return_index=True)
    fresh = planned[np.sort(first)]
    if seen is None:
        return fresh
    named = table["request_key"].take(fresh).to_pylist()
    new = [row for row, key in zip(fresh, named, strict=True) if key not in seen]
    seen.update(named)
    return np.array(new, dtype=np.int64)


def _shares_keys(requests: Path) -> bool:
    """Return whether parts can share requests: only where a control shows no frames or another patient's."""
    for part in tables.parts(requests):
        table = tables.read_part(part, tables.REQUESTS, ("study_id", "frames_study_id"))
        own = pc.fill_null(pc.equal(table["study_id"], table["frames_study_id"]), False)
        if not pc.all(own, min_count=0).as_py():
            return True
    return False


def _among(keys: pa.ChunkedArray, known: pa.Array) -> np.ndarray:
    return np.asarray(pc.is_in(keys, known), dtype=bool)


def _by_study(part: Path, table: pa.Table, rows: np.ndarray, failed: dict[str, int]) -> Iterator[StudyWork]:
    """One row of work per study."""
    studies = table["frames_study_id"].take(rows).to_pylist()
    keys = table["request_key"].take(rows).to_pylist()
    grouped: dict[str, list[int]] = {}
    for place, study_id in enumerate(studies):
        grouped.setdefault(study_id or "", []).append(place)
    for study_id, places in grouped.items():
        yield {
            "study_id": study_id,
            "part": str(part),
            "rows": [int(rows[place]) for place in places],
            "attempts": [failed.get(keys[place], 0) + 1 for place in places],
        }


def missing_of(planned: Plan, model: str) -> Missing:
    """Work that is left for one model of a plan."""
    completions = planned.store.completions(planned.identities[model].model_key)
    return missing(planned.run.requests(model), completions, planned.spec.stream.max_attempts)
