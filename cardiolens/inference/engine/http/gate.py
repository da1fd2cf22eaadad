"""Limit concurrent requests at a server to a window, and send none during a pause that it asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from cardiolens.base.errors import RunError

_START = 8


class Gate:
    """First-come, first-served queue before a server; used within one event loop.

    Its window grows by one per reply until the server first throttles, then by one per window of replies;
    each throttling halves it, unless the throttled request was sent before the last halving.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(min(most, _START))
        self._throttled = False
        self._cut_at = self._paused_until = float("-inf")
        self._inside = 0
        self._in_turn = asyncio.Lock()  # held by the first that waits
        self._changed = asyncio.Event()
        self._closed: str | None = None

    @property
    def size(self) -> int:
        """Number of requests allowed at the server now; at least one."""
        return int(self._limit)

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Hold a slot at the server; yield the event loop's time of entering. RunError if closed."""
        async with self._in_turn:
            await self._admitted()
            self._inside += 1
        try:
            yield asyncio.get_running_loop().time()
        finally:
            self._inside -= 1
            self._changed.set()

    def succeeded(self) -> None:
        """Record that a request was answered; the window may grow."""
        self._limit = min(self._most, self._limit + (1 / self._limit if self._throttled else 1))
        self._changed.set()

    def throttled(self, entered: float, seconds: float) -> None:
        """Record that the server throttles: shrink the window and admit no request for `seconds`."""
        now = asyncio.get_running_loop().time()
        self._paused_until = max(self._paused_until, now + seconds)
        if entered >= self._cut_at:
            self._throttled = True
            self._limit = max(1.0, self._limit / 2)
            self._cut_at = now

    def close(self, why: str) -> None:
        """Admit no more requests: RunError for waiting and later ones. Requests in flight may finish."""
        self._closed = why
        self._changed.set()

    async def _admitted(self) -> None:
        """Wait until there is room and no pause."""
        while self._closed is None:
            pause = self._paused_until - asyncio.get_running_loop().time()
            if pause <= 0 and self._inside < self.size:
                return
            self._changed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(pause if pause > 0 else None):
                    await self._changed.wait()
        raise RunError(self._closed)
