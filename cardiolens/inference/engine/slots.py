"""Slots of an engine: at most so many requests at once, and those that go on with a chain first."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_Waiting = deque["asyncio.Future[None]"]


class Slots:
    """A semaphore whose waiters come in order, but later stages of chains before everything else.

    The engine's caches hold what a chain has shown; by the time that all who wait were served they would not.
    """

    def __init__(self, n: int) -> None:
        self._free = n
        self._first: _Waiting = deque()
        self._others: _Waiting = deque()

    @asynccontextmanager
    async def taken(self, goes_on: bool) -> AsyncIterator[None]:
        """Hold a slot within the block; `goes_on`: for a later stage of a chain."""
        await self._take(self._first if goes_on else self._others)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, queue: _Waiting) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # the slot was handed over at this very moment
                self._give_back()
            raise

    def _give_back(self) -> None:
        """Hand the slot to the next waiter that is still there."""
        for queue in (self._first, self._others):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1
