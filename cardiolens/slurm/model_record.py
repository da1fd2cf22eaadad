"""What the job of a model went through, start by start, and whether another start makes sense."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict

from cardiolens import tables

ModelState = Literal["running", "waiting", "done", "failed"]
_FAULTS = ("failed", "lost")  # endings that a node may be to blame for


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class Attempt(_Record):
    """One start of a job."""

    job: str
    nodes: tuple[str, ...]
    started: datetime
    rows_before: int  # final completions of the model's requests
    ended: datetime | None = None
    rows_after: int | None = None
    outcome: Literal["running", "done", "stopped", "failed", "lost"] = "running"
    reason: str = ""
    counters: Mapping[str, int] = {}
    seats: tuple[str, ...] = ()

    @property
    def added(self) -> int:
        return (self.rows_after or self.rows_before) - self.rows_before


class ModelRecord(_Record):
    """The starts of one model's jobs, and how it stands."""

    model: str
    state: ModelState = "waiting"
    reason: str = ""
    attempts: tuple[Attempt, ...] = ()

    @property
    def counters(self) -> Counter[str]:
        """Of all starts; of one that ended unheard, the rows that it left."""
        total: Counter[str] = Counter()
        for attempt in self.attempts:
            total += Counter(attempt.counters or {"ok": attempt.added})
        return total


class RestartDecision(_Record):
    """Whether a job may start again, and which nodes it should not see."""

    go_on: bool
    reason: str = ""
    exclude: tuple[str, ...] = ()

    def bars(self, nodes: Sequence[str]) -> bool:
        """Whether one of these nodes is to be left out."""
        return bool(set(self.exclude) & set(nodes))


def verdict(attempts: Sequence[Attempt], restarts: int, max_restarts: int, n_nodes: int) -> RestartDecision:
    """After starts of one job that did not end its work.

    A job that was restarted too often ends, and one whose restart added no rows; unless a node is to blame on
    which it failed twice in the same way: that is left out, and one more start tells. `n_nodes`: those that
    it can run on.
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
    """Nodes on which two starts ended by the same fault. Of several nodes at once none can be named."""
    faults = Counter(
        (attempt.nodes[0], attempt.outcome, attempt.reason)
        for attempt in attempts
        if attempt.outcome in _FAULTS and len(attempt.nodes) == 1
    )
    return tuple(sorted({node for (node, _, _), times in faults.items() if times > 1}))


def read_model_record(folder: Path, model: str) -> ModelRecord:
    """The record of a model; an empty one where no job has started."""
    try:
        return ModelRecord.model_validate_json((folder / f"{model}.json").read_text())
    except FileNotFoundError:
        return ModelRecord(model=model)


def write_model_record(folder: Path, record: ModelRecord) -> None:
    """Replace the record of a model."""
    tables.write_text(folder / f"{record.model}.json", json.dumps(record.model_dump(mode="json"), indent=1))
