"""The few calls by which a tracker is told of a sweep; each tracker has its own implementation of them."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

JobType = Literal["sweep", "arm", "model"]
Value = str | int | float | bool | None


class TrackedRun(Protocol):
    """One run of a tracker that is being written."""

    def log(self, row: Mapping[str, int | float], step: int) -> None:
        """Add a row of a series; its axis is the requests done."""

    def summarize(self, values: Mapping[str, Value]) -> None:
        """Set the values that runs are sorted by."""

    def add_table(self, name: str, table: pa.Table) -> int:
        """Add a table, and return the rows of it that were written, counted in what was written."""

    def add_page(self, page: Path) -> None:
        """Add the page of a run."""

    def finish(self, *, failed: bool = False) -> None:
        """End the run."""


class RunGroup(Protocol):
    """The runs of a tracker that belong to one sweep."""

    def open(
        self,
        job_type: JobType,
        name: str | None = None,
        *,
        key: Sequence[str] = (),
        tags: Sequence[str] = (),
        config: Mapping[str, object] | None = None,
    ) -> TrackedRun:
        """Open a run; the same key opens the same run, whose content is replaced."""


@contextmanager
def finishing(run: TrackedRun) -> Iterator[TrackedRun]:
    """Finish a run, as failed where something goes wrong. (W&B's own block prints a traceback of that.)"""
    try:
        yield run
    except BaseException:
        with suppress(Exception):
            run.finish(failed=True)
        raise
    run.finish()
