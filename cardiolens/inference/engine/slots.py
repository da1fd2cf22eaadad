"""Slots of an engine: a limit on concurrent requests; later stages of chains get a slot first."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_Waiting = deque["asyncio.Future[None]"]


class Slots:
    """A first-come, first-served semaphore, except that later stages of chains precede all other requests.

    The engine's caches still hold the frames of a chain; they would be evicted while other requests run.
    """

    def __init__(self, n: int) -> None:
        self._n = n
        self._free = n  # below 0 while more are taken than a lower limit allows
        self._first: _Waiting = deque()
        self._others: _Waiting = deque()

    @asynccontextmanager
    async def taken(self, goes_on: bool) -> AsyncIterator[None]:
        """Hold a slot within the block; `goes_on` marks a later stage of a chain."""
        await self._take(self._first if goes_on else self._others)
        try:
            yield
        finally:
            self._give_back()

    @property
    def n(self) -> int:
        """The limit."""
        return self._n

    def limit(self, n: int) -> None:
        """Set the limit; slots beyond a lower one vanish as they are given back."""
        more, self._n = n - self._n, n
        self._free -= max(-more, 0)
        for _ in range(more):
            self._give_back()

    async def _take(self, queue: _Waiting) -> None:
        if self._free > 0:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # cancelled just after receiving the slot
                self._give_back()
            raise

    def _give_back(self) -> None:
        """Pass the slot to the next waiter that was not cancelled, unless the limit was lowered."""
        if self._free < 0:
            self._free += 1
            return
        for queue in (self._first, self._others):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1
