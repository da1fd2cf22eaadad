"""Limit concurrent requests at a server to a window, and send none during a pause that it asked for."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cardiolens.base.errors import RunError


class Gate:
    """First-come, first-served queue before a server; used within one event loop."""

    def __init__(self, most: int) -> None:
        self._window = Window(most)
        self._inside = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._pause: asyncio.TimerHandle | None = None
        self._closed: str | None = None

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Hold a slot at the server; yield the event loop's time of entering. RunError if closed."""
        await self._enter()
        try:
            yield asyncio.get_running_loop().time()
        finally:
            self._inside -= 1
            self._let_in()

    def succeeded(self) -> None:
        """Record that a request was answered; the window may grow."""
        self._window.succeeded()

    def throttled(self, entered: float, seconds: float) -> None:
        """Record that the server throttles: shrink the window and admit no request for `seconds`."""
        loop = asyncio.get_running_loop()
        self._window.throttled(entered, loop.time())
        until = loop.time() + seconds
        if self._pause is not None and self._pause.when() >= until:
            return
        if self._pause is not None:
            self._pause.cancel()
        self._pause = loop.call_at(until, self._go_on)

    def close(self, why: str) -> None:
        """Admit no more requests: RunError for waiting and later ones. Requests in flight may finish."""
        self._closed = why
        while self._waiting:
            waiting = self._waiting.popleft()
            if not waiting.done():
                waiting.set_exception(RunError(why))

    async def _enter(self) -> None:
        if self._closed is not None:
            raise RunError(self._closed)
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiting)
        self._let_in()
        try:
            await waiting
        except asyncio.CancelledError:
            if waiting.done() and not waiting.cancelled():  # cancelled just after it was admitted
                self._inside -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        while self._waiting and self._pause is None and self._inside < self._window.size:
            waiting = self._waiting.popleft()
            if not waiting.done():
                self._inside += 1
                waiting.set_result(None)

    def _go_on(self) -> None:
        self._pause = None
        self._let_in()


_START = 8


class Window:
    """The number of concurrent requests allowed at the server.

    Grows by one per reply until the server first throttles, then by one per window of replies; each
    throttling halves the window, unless the throttled request was sent before the last halving.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._limit = float(min(most, _START))
        self._throttled = False
        self._cut_at = float("-inf")

    @property
    def size(self) -> int:
        """Number of requests allowed at the server now; at least one."""
        return int(self._limit)

    def succeeded(self) -> None:
        """Record that a request was answered."""
        self._limit = min(self._most, self._limit + (1 / self._limit if self._throttled else 1))

    def throttled(self, sent_at: float, now: float) -> None:
        """Record that the server throttled a request that was sent at `sent_at`."""
        if sent_at < self._cut_at:
            return
        self._throttled = True
        self._limit = max(1.0, self._limit / 2)
        self._cut_at = now
