"""The progress file of a model: one JSON line of counters per finished study."""

import json
import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from cardiolens.base import disk
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.stream.progress import Standing

log = logging.getLogger(__name__)

ProgressRow = dict[str, int | float]
DONE = "requests/done"  # the axis of every series: two runs of one model differ in time, not in requests
_ROW = TypeAdapter(ProgressRow)


def row_of(standing: Standing) -> ProgressRow:
    """Counters since the model began, under names that W&B can chart; zero failure kinds are left out."""
    of = standing.counters
    failures = {f"failed/{kind.name.lower()}": of.get(kind, 0) for kind in ErrorKind}
    row = {
        "time": round(time.time(), 3),  # seconds since 1970
        "requests/unique": standing.unique,
        DONE: standing.done,
        "requests/reused": standing.reused,
        "requests/executed": standing.executed,
        "requests/refused": of.get("refused", 0),
        "requests/failed": of.get("error", 0),
        "requests_per_second": round(standing.rate, 3),
        **{name: n for name, n in failures.items() if n},
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
