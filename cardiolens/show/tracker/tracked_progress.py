"""Live progress of models: one JSON line of counters per finished study, mirrored in W&B."""

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue

from pydantic import TypeAdapter, ValidationError

from cardiolens.base import disk
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.execution import Standing, Watch
from cardiolens.show.tracker.wandb_runs import DONE, WandbGroup, WandbRun, open_group

log = logging.getLogger(__name__)

ProgressRow = dict[str, int | float]
_ROW = TypeAdapter(ProgressRow)
_PATIENCE = 20.0  # seconds for W&B to take in the last rows


def row_of(standing: Standing) -> ProgressRow:
    """Counters since the model began, under names that W&B can chart; zero failure kinds are left out."""
    of = standing.counters
    row = {
        "time": round(time.time(), 3),  # seconds since 1970
        "requests/unique": standing.unique,
        DONE: standing.done,
        "requests/reused": standing.reused,
        "requests/executed": standing.executed,
        "requests/refused": of.get("refused", 0),
        "requests/failed": of.get("error", 0),
        "requests_per_second": round(standing.rate, 3),
        **{f"failed/{kind.name.lower()}": of[kind] for kind in ErrorKind if of.get(kind)},
    }
    if of.get("prompt_tokens"):
        row |= {
            "tokens/prompt": of["prompt_tokens"],
            "tokens/cached": of.get("cached_tokens", 0),
            "tokens/output": of.get("output_tokens", 0),
            "tokens_per_second": round(standing.tokens_per_second, 1),
            "frames/referenced": of.get("frames_referenced", 0),
            "frames/processed": of.get("frames_processed", 0),
            "frames/encoded": of.get("frames_encoded", 0),
        }
    return row


def appender(path: Path) -> Callable[[ProgressRow], None]:
    """Return a function that appends rows to a file; a failed write is logged once, and is no error."""
    failed = False

    def append(row: ProgressRow) -> None:
        nonlocal failed
        if failed:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = disk.open_log(path)
            try:
                cut = path.stat().st_size and not _ends_a_line(path)  # by a kill while a row was written
                disk.append(handle, b"\n" * bool(cut) + json.dumps(row).encode() + b"\n", path)
            finally:
                os.close(handle)
        except OSError as error:
            failed = True
            log.warning("the progress of the model was not written (%s); its completions are", error)

    return append


def read_rows(path: Path) -> list[ProgressRow]:
    """Read the rows of a file, without unfinished lines of killed processes; empty if there is no file."""
    if not path.exists():
        return []
    rows = []
    for line in read_bytes(path).splitlines():
        try:
            rows.append(_ROW.validate_json(line))
        except ValidationError:
            log.info("%s: an unfinished line was left out", path)
    return rows


def _ends_a_line(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read(1) == b"\n"


@contextmanager
def watching(plan: Plan) -> Iterator[Watch]:
    """Yield a function that starts recording a model and returns the callback for its counters."""
    tracker = plan.spec.tracker
    group = open_group(plan.run, plan.spec, tracker, protocol=plan.protocol, studies=len(plan.study_ids))
    mirror = None if tracker.mode == "none" else _Mirror(group)

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


class _Mirror:
    """One run of the tracker per model, written by a separate thread so that a slow tracker delays no model.

    Steps are numbered from the first row on disk: a run that is resumed online skips the rows it has.
    """

    def __init__(self, group: WandbGroup) -> None:
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
        runs: dict[str, WandbRun] = {}
        steps: dict[str, int] = {}
        while (entry := self._queue.get()) is not None:
            model, rows = entry
            if model not in runs:
                runs[model], steps[model] = self._group.open_model(model), 0
            for row in rows:
                runs[model].log(row, steps[model])
                steps[model] += 1
        for run in runs.values():
            with run:
                pass
