"""The record of a model's job, one entry per start, and the decision whether it may start again."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes

ModelState = Literal["running", "waiting", "done", "failed"]
_FAULTS = ("failed", "lost")  # outcomes that a faulty node may cause


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Attempt(_Record):
    """One start of a job."""

    job: str
    nodes: tuple[str, ...]
    started: datetime
    rows_before: int  # final completions of the model when it started
    ended: datetime | None = None
    rows_after: int | None = None
    outcome: Literal["running", "done", "stopped", "failed", "lost"] = "running"
    reason: str = ""
    counters: Mapping[str, int] = {}
    seats: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        """Number of final completions that this start added."""
        return (self.rows_after or self.rows_before) - self.rows_before


class ModelRecord(_Record):
    """The state of one model and all starts of its jobs."""

    model: str
    state: ModelState = "waiting"
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()

    @property
    def counters(self) -> Counter[str]:
        """Sum of the counters of all starts; a start without counters counts its added rows as ok."""
        total: Counter[str] = Counter()
        for attempt in self.attempts:
            total += Counter(attempt.counters or {"ok": attempt.added})
        return total


class RestartDecision(_Record):
    """Whether a job may start again, and the nodes that it must avoid."""

    go_on: bool
    reason: str = ""
    exclude: tuple[str, ...] = ()

    def bars(self, nodes: Sequence[str]) -> bool:
        """Return whether one of the nodes is excluded."""
        return bool(set(self.exclude) & set(nodes))


def verdict(attempts: Sequence[Attempt], restarts: int, max_restarts: int, n_nodes: int) -> RestartDecision:
    """Decide whether a job with work left may start again, from the attempts of that job.

    The job ends after `max_restarts` restarts, or after two starts without new rows. Exception: if the last
    start blamed a further node (two equal failures on it), that node is excluded and the job starts once
    more. `n_nodes` is the number of nodes on which the job can run; if all are blamed, the job ends.
    """
    exclude, last = to_blame(attempts), attempts[-1].reason if attempts else ""
    if len(exclude) >= n_nodes:
        return RestartDecision(go_on=False, reason=f"every node failed it twice: {last}", exclude=exclude)
    if restarts >= max_restarts:
        return RestartDecision(go_on=False, reason=f"restarted {restarts} times, the most allowed: {last}")
    barren = [not attempt.added for attempt in attempts[-2:]]
    if len(barren) == 2 and all(barren) and exclude == to_blame(attempts[:-1]):
        return RestartDecision(go_on=False, reason=f"a restart added no rows: {last}", exclude=exclude)
    return RestartDecision(go_on=True, exclude=exclude)


def to_blame(attempts: Sequence[Attempt]) -> tuple[str, ...]:
    """Return the nodes on which two starts failed in the same way; starts on several nodes blame none."""
    faults = Counter(
        (attempt.nodes[0], attempt.outcome, attempt.reason)
        for attempt in attempts
        if attempt.outcome in _FAULTS and len(attempt.nodes) == 1
    )
    return tuple(sorted({node for (node, _, _), times in faults.items() if times > 1}))


def read_model_record(folder: Path, model: str) -> ModelRecord:
    """Read the record of a model, empty if no job has started; InputError if the file is not a record."""
    path = folder / f"{model}.json"
    try:
        return ModelRecord.model_validate_json(read_bytes(path))
    except FileNotFoundError:
        return ModelRecord(model=model)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check it, or delete it") from None
    except ValidationError as error:
        raise InputError(
            f"{path}: not the record of a model's jobs ({error.errors()[0]['msg']}); delete it"
        ) from None


def write_model_record(folder: Path, record: ModelRecord) -> None:
    """Write the record of a model, replacing the previous one."""
    disk.write_text(folder / f"{record.model}.json", json.dumps(record.model_dump(mode="json"), indent=1))
