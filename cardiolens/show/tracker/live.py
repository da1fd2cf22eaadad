"""Live progress of models, appended to disk and mirrored in a tracker."""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.progress import Standing, Watch
from cardiolens.show.tracker.run_group import open_group
from cardiolens.show.tracker.tracked_progress import ProgressRow, appender, read_rows, row_of
from cardiolens.show.tracker.tracked_run import RunGroup, TrackedRun

log = logging.getLogger(__name__)

_PATIENCE = 20.0  # seconds for a tracker to take in the last rows


@contextmanager
def watching(plan: Plan) -> Iterator[Watch]:
    """Yield a function that starts recording a model and returns the callback for its counters."""
    tracker = plan.spec.tracker
    group = open_group(plan.run, plan.spec, tracker, protocol=plan.protocol, studies=len(plan.study_ids))
    mirror = None if tracker.kind == "none" or tracker.runs == "summary" else _Mirror(group)

    def begin(model: str, _missing: Missing) -> Callable[[Standing], None]:
        path = plan.run.progress(model)
        append = appender(path)
        if mirror is not None:
            mirror.tell(model, read_rows(path))

        def tell(standing: Standing) -> None:
            row = row_of(standing)
            append(row)
            if mirror is not None:
                mirror.tell(model, [row])

        return tell

    try:
        yield begin
    finally:
        if mirror is not None:
            mirror.close()


def open_model(group: RunGroup, model: str, options: Mapping[str, object] | None = None) -> TrackedRun:
    """Open the run of a model; during a sweep and after it, it is the same."""
    config = {"model": model, **(options or {})}
    return group.open("model", model, key=["model", model], tags=[model], config=config)


def add_progress(opened: TrackedRun, path: Path) -> None:
    """Write all progress rows of a model to its run; a run that goes on online skips the rows it has."""
    for step, row in enumerate(read_rows(path)):
        opened.log(row, step)


class _Mirror:
    """One run of the tracker per model, written by a separate thread so that a slow tracker delays no model.

    Steps are numbered from the first row on disk: a run that is resumed online skips the rows it has.
    """

    def __init__(self, group: RunGroup) -> None:
        self._group = group
        self._queue = SimpleQueue[tuple[str, list[ProgressRow]] | None]()
        self._thread = threading.Thread(target=self._run, name="tracker", daemon=True)
        self._thread.start()

    def tell(self, model: str, rows: list[ProgressRow]) -> None:
        """Queue rows of a model for writing."""
        self._queue.put((model, rows))

    def close(self) -> None:
        """Finish all runs; logs an error if that takes longer than _PATIENCE."""
        self._queue.put(None)
        self._thread.join(_PATIENCE)
        if self._thread.is_alive():
            log.error("Weights & Biases did not take in how far models were within %g s", _PATIENCE)

    def _run(self) -> None:
        try:
            self._write_rows()
        except Exception as error:  # noqa: BLE001 - no failure of a tracker may stop the sweep
            log.error("Weights & Biases gets no more progress rows (%s); the files on disk do", error)

    def _write_rows(self) -> None:
        runs: dict[str, TrackedRun] = {}
        steps: dict[str, int] = {}
        while (entry := self._queue.get()) is not None:
            model, rows = entry
            if model not in runs:
                runs[model], steps[model] = open_model(self._group, model), 0
            for row in rows:
                runs[model].log(row, steps[model])
                steps[model] += 1
        for run in runs.values():
            run.finish()
