"""Writer of completions while an engine runs, with a bound on the rows and the seconds not yet on disk."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from cardiolens.base.sanitize import one_line
from cardiolens.inference.stream.messages import CompletionRow
from cardiolens.storage import tables

_LONGEST = 300  # characters of an error that a completion repeats
_SOON = 0.25  # seconds; without it an instant reader would leave thousands of small parts


class CompletionWriter:
    """Collects completions and writes them as part files; one writer per replica."""

    def __init__(self, folder: Path, flush_rows: int, flush_seconds: float) -> None:
        self._folder = folder
        self._flush_rows = flush_rows
        self._flush_seconds = flush_seconds
        self._rows: list[CompletionRow] = []
        self._written: asyncio.Future[None] | None = None  # of the rows collected now
        self._deadline: asyncio.TimerHandle | None = None
        self._writes: set[asyncio.Task[None]] = set()
        self._in_order = asyncio.Lock()  # a stage of a chain is never on disk without those before it

    def add(self, row: CompletionRow) -> asyncio.Future[None]:
        """Collect a completion; the returned future is done when it is on disk."""
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
        """Write the collected rows after a moment in which more may come."""
        if self._deadline is not None and self._deadline.when() - asyncio.get_running_loop().time() > _SOON:
            self._deadline.cancel()
            self._deadline = asyncio.get_running_loop().call_later(_SOON, self.flush)

    def flush(self) -> None:
        """Start to write the collected rows in a thread, so that the event loop goes on."""
        if self._written is None:
            return
        assert self._deadline is not None
        self._deadline.cancel()
        rows, write_future = self._rows, self._written
        self._rows, self._written, self._deadline = [], None, None
        task = asyncio.get_running_loop().create_task(self._write(rows, write_future))
        self._writes.add(task)  # a task without a reference may be collected before it ran
        task.add_done_callback(self._writes.discard)

    async def _write(self, rows: list[CompletionRow], write_future: asyncio.Future[None]) -> None:
        try:
            async with self._in_order:  # first come, first served
                await asyncio.to_thread(write_completions, self._folder, rows)
        except Exception as error:  # noqa: BLE001 - passed on to all who wait for the rows
            write_future.set_exception(error)
        else:
            write_future.set_result(None)


def write_completions(folder: Path, rows: list[CompletionRow]) -> None:
    """Write one part file; `written_at` is now."""
    tables.write_part(folder, _table(rows, datetime.now(UTC)), tables.COMPLETIONS)


_UNFIT = (ValueError, TypeError, OverflowError)  # text that is no UTF-8, a count that is no int32


def _table(rows: list[CompletionRow], now: datetime) -> pa.Table:
    """Completions as a table. One that the table cannot hold is recorded as an error, with its neighbours."""
    try:
        return _as_table(rows, now)
    except _UNFIT:
        return tables.concat([_table_of_one(row, now) for row in rows], tables.COMPLETIONS)


def _table_of_one(row: CompletionRow, now: datetime) -> pa.Table:
    try:
        return _as_table([row], now)
    except _UNFIT as error:
        unfit: CompletionRow = {
            "request_key": row["request_key"],
            "node": row["node"],
            "attempt": row["attempt"],
            "status": "engine_error",
            "error": f"its reply cannot be stored: {one_line(str(error), _LONGEST)}",
        }
        return _as_table([unfit], now)


def _as_table(rows: list[CompletionRow], now: datetime) -> pa.Table:
    return tables.from_rows([{**row, "written_at": now} for row in rows], tables.COMPLETIONS)
