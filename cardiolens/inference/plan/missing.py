"""Find the requests still to execute: the anti-join of a plan with the existing completions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.plan.prefix_order import SHOWN, beginnings, prefix_order
from cardiolens.storage import tables
from cardiolens.storage.partitions import AT_ONCE, HashPartitions, number_keys
from cardiolens.storage.schemas import COMPLETIONS, FINAL, PLANNED, REQUESTS

WORK = pa.schema(
    [
        ("study_id", pa.string()),  # the study whose frames are shown
        ("part", pa.string()),  # path of the part of `requests` that contains the rows
        ("rows", pa.list_(pa.int32())),  # row numbers in that part, in the order to ask
        ("attempts", pa.list_(pa.int32())),  # per row: number of the next try, from 1
    ]
)
_ASKED = pa.schema([("request_key", pa.string()), ("part", pa.int32()), ("row", pa.int32())])
_SAID = pa.schema([COMPLETIONS.field(name) for name in ("request_key", "status")])


class StudyWork(TypedDict):
    """A row of WORK."""

    study_id: str
    part: str
    rows: list[int]
    attempts: list[int]


@dataclass(frozen=True, slots=True)
class Missing:
    """Work that is left for one model."""

    work: pa.Table  # WORK: one row per study
    unique: int  # distinct requests planned
    done: int  # distinct requests with a final completion
    exhausted: int  # distinct requests that are not asked: they failed max_attempts times

    @property
    def left(self) -> int:
        return self.unique - self.done - self.exhausted


def final_keys(completions: Path) -> frozenset[str]:
    """Read the keys in a folder of completions that need no further try."""
    rows = tables.read(completions, COMPLETIONS, _SAID.names)
    is_final = pc.is_in(rows["status"], pa.array(FINAL))
    return frozenset(rows.filter(is_final)["request_key"].to_pylist())


def killer_keys(completions: Path) -> frozenset[str]:
    """Read the keys in a folder of completions that killed an engine."""

    def of(parts: Iterator[pa.Table]) -> frozenset[str]:
        killed = (part.filter(pc.starts_with(part["error"], ErrorKind.KILLED)) for part in parts)
        return frozenset(key for rows in killed for key in rows["request_key"].to_pylist())

    return tables.from_parts(completions, COMPLETIONS, ("request_key", "error"), of)


def missing(requests: Path, completions: Path, max_attempts: int, *, retry_errors: bool = False) -> Missing:
    """Find each distinct request without a final completion, once, grouped by study.

    With `retry_errors` only those that ended in an error, however often; all others count as exhausted.

    Memory: one hash partition of the keys, and some bytes per missing request.
    """
    n_shares = 1 + max(map(tables.count_rows, (requests, completions))) // AT_ONCE
    parts = tables.parts(requests)
    request_rows = HashPartitions(_ASKED, n_shares, _planned(parts))
    columns = ("request_key", "status")
    reply_rows = tables.from_parts(
        completions, COMPLETIONS, columns, partial(HashPartitions, _SAID, n_shares)
    )
    most = None if retry_errors else max_attempts
    shares = [_share(request_rows.of(share), reply_rows.of(share), most) for share in range(n_shares)]
    remaining = np.concatenate([share.left for share in shares], axis=1)
    part, row, attempt = remaining[:, np.lexsort((remaining[1], remaining[0]))]
    ends = np.searchsorted(part, np.arange(len(parts) + 1))
    rows: list[StudyWork] = []
    for path, first, end in zip(parts, ends[:-1], ends[1:], strict=True):
        if end > first:
            rows += _by_study(path, row[first:end], attempt[first:end])
    totals = {name: sum(getattr(share, name) for share in shares) for name in ("unique", "done", "exhausted")}
    return Missing(pa.Table.from_pylist(rows, schema=WORK), **totals)


def _planned(parts: Sequence[Path]) -> Iterator[pa.Table]:
    """Yield the planned requests of each part: key, part number and row."""
    for number, part in enumerate(parts):
        table = tables.read_part(part, REQUESTS, ("status", "request_key"))
        rows = np.flatnonzero(np.asarray(pc.equal(table["status"], PLANNED)))
        places = pa.array(np.full(len(rows), number, np.int32)), pa.array(rows.astype(np.int32))
        yield pa.table([table["request_key"].take(rows), *places], schema=_ASKED)


@dataclass(frozen=True, slots=True)
class _Share:
    """Missing requests of one hash partition of the keys."""

    unique: int
    done: int
    exhausted: int
    left: np.ndarray  # (3, request): part number, row in that part, number of the next try


def _share(requests: pa.Table, completions: pa.Table, max_attempts: int | None) -> _Share:
    """Find the missing requests of one partition; a repeated key counts at its first row.

    Without `max_attempts`, those that failed at least once.
    """
    keys, replied = number_keys(requests, completions)
    _, first = np.unique(keys, return_index=True)
    final = np.asarray(pc.is_in(completions["status"], pa.array(FINAL)), dtype=bool)
    is_done = np.isin(keys[first], replied[final])
    failures = np.bincount(replied[~final], minlength=max(keys.max(initial=-1), replied.max(initial=-1)) + 1)
    tries = failures[keys[first]]
    is_exhausted = (tries == 0 if max_attempts is None else tries >= max_attempts) & ~is_done
    going = ~(is_done | is_exhausted)
    places = (np.asarray(requests[name], dtype=np.int32)[first][going] for name in ("part", "row"))
    remaining = np.stack([*places, (tries[going] + 1).astype(np.int32)])
    return _Share(len(first), int(is_done.sum()), int(is_exhausted.sum()), remaining)


def _by_study(part: Path, rows: np.ndarray, attempts: np.ndarray) -> Iterator[StudyWork]:
    """Yield one row of work per study; its requests in the order in which prompts begin alike."""
    shown = tables.read_part(part, REQUESTS, SHOWN).take(rows)
    studies = shown["frames_study_id"].to_pylist()
    grouped: dict[str, list[int]] = {}
    for place, study_id in enumerate(studies):
        grouped.setdefault(study_id or "", []).append(place)
    order = prefix_order(beginnings(shown))
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    for study_id, places in grouped.items():
        asked_in_turn = sorted(places, key=rank.__getitem__)
        yield {
            "study_id": study_id,
            "part": str(part),
            "rows": rows[asked_in_turn].tolist(),
            "attempts": attempts[asked_in_turn].tolist(),
        }


def missing_of(planned: Plan, model: str) -> Missing:
    """Find the work that is left for one model of a plan."""
    completions = planned.store.completions(planned.identities[model].model_key)
    spec = planned.spec
    return missing(
        planned.run.requests(model),
        completions,
        spec.stream.max_attempts,
        retry_errors=spec.retry == "errors",
    )
