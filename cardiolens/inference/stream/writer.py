"""Write completions while an engine runs; few rows, and for few seconds, are not yet on disk."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from cardiolens.base.sanitize import one_line
from cardiolens.inference.stream.loader import Row
from cardiolens.storage import schemas, tables

_LONGEST = 300  # characters of an error message in a completion
_SOON = 0.25  # seconds; without this delay an instant reader would write thousands of small parts


class CompletionWriter:
    """Collects completions and writes them as part files; one writer per replica."""

    def __init__(self, folder: Path, flush_rows: int, flush_seconds: float) -> None:
        self._folder = folder
        self._flush_rows = flush_rows
        self._flush_seconds = flush_seconds
        self._rows: list[Row] = []
        self._written: asyncio.Future[None] | None = None  # done when `_rows` is on disk
        self._deadline: asyncio.TimerHandle | None = None
        self._writes: set[asyncio.Task[None]] = set()
        self._in_order = asyncio.Lock()  # a stage of a chain must not be on disk before earlier stages

    def add(self, row: Row) -> asyncio.Future[None]:
        """Collect a completion; the returned future is done when the completion is on disk."""
        loop = asyncio.get_running_loop()
        if self._written is None:
            self._written = loop.create_future()
            self._deadline = loop.call_later(self._flush_seconds, self.flush)
        write_future = self._written
        self._rows.append(row)
        if len(self._rows) >= self._flush_rows:
            self.flush()
        return write_future

    def flush_soon(self) -> None:
        """Write the collected rows after a short delay, in which more rows may come."""
        if self._deadline is not None and self._deadline.when() - asyncio.get_running_loop().time() > _SOON:
            self._deadline.cancel()
            self._deadline = asyncio.get_running_loop().call_later(_SOON, self.flush)

    def flush(self) -> None:
        """Start writing the collected rows in a thread, so that the event loop is not blocked."""
        if self._written is None:
            return
        assert self._deadline is not None
        self._deadline.cancel()
        rows, write_future = self._rows, self._written
        self._rows, self._written, self._deadline = [], None, None
        task = asyncio.create_task(self._write(rows, write_future))
        self._writes.add(task)  # a task without a reference may be garbage-collected before it runs
        task.add_done_callback(self._writes.discard)

    async def drained(self) -> None:
        """Write what is collected, and wait until all of it is on disk or could not be written."""
        self.flush_soon()
        while waiting := [write for write in (self._written, *self._writes) if write is not None]:
            await asyncio.wait(waiting)

    async def _write(self, rows: list[Row], write_future: asyncio.Future[None]) -> None:
        try:
            async with self._in_order:  # first come, first served
                await asyncio.to_thread(write_completions, self._folder, rows)
        except Exception as error:  # noqa: BLE001 - passed to all that wait for the rows
            write_future.set_exception(error)
        else:
            write_future.set_result(None)


_UNFIT = (ValueError, TypeError, OverflowError)  # text is not UTF-8, or a count exceeds int32


def write_completions(folder: Path, rows: list[Row]) -> None:
    """Write one part file; `written_at` is the current time.

    A completion that the table cannot store becomes an error row.
    """
    now = datetime.now(UTC)
    try:
        table = _table(rows, now)
    except _UNFIT:
        table = tables.concat([_table_of_one(row, now) for row in rows], schemas.COMPLETIONS)
    tables.write_part(folder, table, schemas.COMPLETIONS)


def _table_of_one(row: Row, now: datetime) -> pa.Table:
    try:
        return _table([row], now)
    except _UNFIT as error:
        unfit = {name: row[name] for name in ("request_key", "node", "attempt")}
        reason = f"its reply cannot be stored: {one_line(str(error), _LONGEST)}"
        return _table([unfit | {"status": "engine_error", "error": reason}], now)


def _table(rows: list[Row], now: datetime) -> pa.Table:
    return tables.from_rows([{**row, "written_at": now} for row in rows], schemas.COMPLETIONS)
