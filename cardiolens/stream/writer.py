"""Completions written while an engine goes on: at most so many rows, or seconds, are ever unwritten."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from cardiolens import tables
from cardiolens.stream.messages import CompletionRow

_SOON = 0.25  # seconds: an instant reader would otherwise leave thousands of small parts


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

    def add(self, row: CompletionRow) -> asyncio.Future[None]:
        """Collect a completion; the future is done when it is on disk."""
        loop = asyncio.get_running_loop()
        if self._written is None:
            self._written = loop.create_future()
            self._deadline = loop.call_later(self._flush_seconds, self.flush)
        written = self._written
        self._rows.append(row)
        if len(self._rows) >= self._flush_rows:
            self.flush()
        return written

    def flush_soon(self) -> None:
        """Write what was collected after a moment in which more may come."""
        if self._deadline is not None and self._deadline.when() - asyncio.get_running_loop().time() > _SOON:
            self._deadline.cancel()
            self._deadline = asyncio.get_running_loop().call_later(_SOON, self.flush)

    def flush(self) -> None:
        """Write what was collected, beside the loop."""
        if self._written is None:
            return
        assert self._deadline is not None
        self._deadline.cancel()
        rows, written = self._rows, self._written
        self._rows, self._written, self._deadline = [], None, None
        task = asyncio.get_running_loop().create_task(self._write(rows, written))
        self._writes.add(task)  # a task without a reference may be collected before it ran
        task.add_done_callback(self._writes.discard)

    async def _write(self, rows: list[CompletionRow], written: asyncio.Future[None]) -> None:
        try:
            await asyncio.to_thread(write_completions, self._folder, rows)
        except Exception as error:  # noqa: BLE001 - whatever it is, those who wait for the rows must hear it
            written.set_exception(error)
        else:
            written.set_result(None)


def write_completions(folder: Path, rows: list[CompletionRow]) -> None:
    """One part file; `written_at` is now."""
    now = datetime.now(UTC)
    table = tables.from_rows([{**row, "written_at": now} for row in rows], tables.COMPLETIONS)
    tables.write_part(folder, table, tables.COMPLETIONS)
