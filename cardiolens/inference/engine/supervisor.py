"""Supervise an engine: limit its restarts, and find the request that kills it."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

from cardiolens.base.errors import RunError
from cardiolens.inference.engine.ask import (
    Ask,
    Engine,
    EngineDeadError,
    ErrorKind,
    NotAskedError,
    Pictures,
    Reply,
    RequestError,
)


class Slots:
    """A first-come, first-served semaphore, except that later stages of chains precede all other requests.

    The engine's caches still hold the frames of a chain; they would be evicted while other requests run.
    """

    def __init__(self, n: int) -> None:
        self._free = n
        self._numbers = count()
        self._waiting: list[tuple[bool, int, asyncio.Future[None]]] = []  # a heap

    @asynccontextmanager
    async def taken(self, goes_on: bool) -> AsyncIterator[None]:
        """Hold a slot within the block; `goes_on` marks a later stage of a chain."""
        await self._take(goes_on)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, goes_on: bool) -> None:
        if self._free:
            self._free -= 1
            return
        turn = asyncio.get_running_loop().create_future()
        heappush(self._waiting, (not goes_on, next(self._numbers), turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # cancelled just after receiving the slot
                self._give_back()
            raise

    def _give_back(self) -> None:
        """Pass the slot to the next waiter that was not cancelled."""
        while self._waiting:
            turn = heappop(self._waiting)[-1]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1


log = logging.getLogger(__name__)

_GROUP = 16  # suspects asked concurrently; if a group kills the engine, its members are asked one by one


@dataclass(eq=False, slots=True)
class _Suspect:
    """A request that was in flight when the engine died, or that killed an engine in an earlier run."""

    ask: Ask
    pictures: Pictures
    reply: "asyncio.Future[Reply]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())


RESTARTS = 6  # of the engine of one replica in a run


class Supervisor:
    """One engine, shared by concurrent requests, at most `width` of them in flight.

    When the engine dies, every request in flight becomes a suspect, and new requests wait. The engine is
    rebuilt and the suspects are asked again, in groups of 16 if there are more than 16, else one by one. If a
    group kills the engine again, its members are asked one by one. A request that kills the engine when
    asked alone ends in RequestError; all others get their reply. Requests in `killed_before`, which killed an
    engine in an earlier run, are asked alone at once.
    """

    def __init__(
        self, engine: Engine, width: int, max_restarts: int, killed_before: Collection[str] = ()
    ) -> None:
        self._engine = engine
        self._killed_before = killed_before
        self._slots = Slots(width)
        self._restarts_left = max_restarts
        self._loading: asyncio.Task[None] | None = None
        self._started = False
        self._starts = 0
        self._load_seconds = 0.0
        self._in_flight = 0
        self._died: EngineDeadError | None = None  # why the requests in flight became suspects
        self._killers = 0  # requests that killed the engine alone
        self._idle = asyncio.Event()  # set while only suspects are in flight
        self._idle.set()
        self._calm = asyncio.Event()  # set while there are no suspects
        self._calm.set()
        self._suspects: list[_Suspect] = []
        self._inquest: asyncio.Task[None] | None = None
        self._given_up: Exception | None = None
        self._stopped = asyncio.Event()

    @property
    def is_up(self) -> bool:
        """Whether the engine was started and did not die since."""
        return self._started

    def stop(self) -> None:
        """Send no more requests to the engine; requests in flight may finish, and none waits for a start."""
        self._stopped.set()

    async def answer(self, ask: Ask, pictures: Pictures, *, goes_on: bool = False) -> Reply:
        """Ask the engine and return its reply; with `goes_on` (later stage of a chain), skip the queue.

        RequestError if the engine cannot answer this request, RunError if it died too often, NotAskedError
        after `stop`.
        """
        async with self._slots.taken(goes_on):
            killed_before = ask.request_key in self._killed_before
            if not killed_before:
                await self._calm.wait()
            self._raise_if_over()
            if killed_before:
                return await self._suspect(ask, pictures)
            self._in_flight += 1
            self._idle.clear()
            try:
                await self._start()
                return await self._engine.answer(ask, pictures)
            except EngineDeadError as error:
                self._died = error
            finally:
                self._in_flight -= 1
                if not self._in_flight:
                    self._idle.set()
            return await self._suspect(ask, pictures)

    def _raise_if_over(self) -> None:
        if self._stopped.is_set():
            raise NotAskedError
        if self._given_up is not None:
            raise self._given_up

    async def _start(self) -> None:
        """Start the engine unless it is up; NotAskedError if the run stops before it is."""
        if self._started:
            return
        self._raise_if_over()
        if self._loading is None or self._loading.done():
            self._loading = asyncio.create_task(self._load())
            self._loading.add_done_callback(_retrieved)  # after a stop nobody waits for it
        stopped = asyncio.create_task(self._stopped.wait())
        await asyncio.wait((self._loading, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if not self._loading.done():
            raise NotAskedError
        self._loading.result()

    async def _load(self) -> None:
        began = time.monotonic()
        try:
            await self._engine.start()
        except Exception as error:
            self._given_up = RunError(f"the engine could not be started: {_first_line(error)}")
            raise self._given_up from error
        self._started = True
        self._starts += 1
        self._load_seconds += time.monotonic() - began

    def take_starts(self) -> tuple[int, float]:
        """Return the number of engine starts since the last call, and their seconds."""
        starts = self._starts, self._load_seconds
        self._starts, self._load_seconds = 0, 0.0
        return starts

    async def _suspect(self, ask: Ask, pictures: Pictures) -> Reply:
        suspect = _Suspect(ask, pictures)
        self._suspects.append(suspect)
        self._calm.clear()
        if self._inquest is None:
            self._inquest = asyncio.create_task(self._hold_inquest())
        return await suspect.reply

    async def _hold_inquest(self) -> None:
        await self._idle.wait()  # until every request in flight has a reply or is a suspect
        try:
            if self._died is not None:
                self._bury(self._died)
            together = _GROUP if len(self._suspects) > _GROUP else 1
            while pending := self._pending():
                likely = [one for one in pending if one.ask.request_key in self._killed_before]
                await self._try(likely[:1] or pending[:together])
        except Exception as error:  # noqa: BLE001 - every caller that waits for a reply must get the error
            self._given_up = error
            for suspect in self._pending():
                suspect.reply.set_exception(error)
        finally:
            self._suspects = []
            self._inquest = self._died = None
            self._calm.set()

    def _pending(self) -> list[_Suspect]:
        return [suspect for suspect in self._suspects if not suspect.reply.done()]

    async def _try(self, group: Sequence[_Suspect]) -> None:
        deaths = await asyncio.gather(*(self._attempt(suspect) for suspect in group))
        died = next((death for death in deaths if death is not None), None)
        if died is None:
            return
        if len(group) == 1:
            message = f"{ErrorKind.KILLED} when asked alone ({died})"
            log.error("request %s %s", group[0].ask.request_key, message)
            group[0].reply.set_exception(RequestError(ErrorKind.KILLED, message))
            self._killers += 1
        self._bury(died)
        for suspect in group:
            if not suspect.reply.done():
                await self._try([suspect])

    async def _attempt(self, suspect: _Suspect) -> EngineDeadError | None:
        await self._start()
        try:
            suspect.reply.set_result(await self._engine.answer(suspect.ask, suspect.pictures))
        except EngineDeadError as error:
            return error
        except RequestError as error:
            suspect.reply.set_exception(error)
        return None

    def _bury(self, died: EngineDeadError) -> None:
        """Mark the engine for a restart at its next use; RunError if no restart is left."""
        if not self._restarts_left:
            remedy = "lower max_num_seqs"
            if self._killers:
                remedy = (
                    f"requests that kill it alone are recorded as failed ({self._killers} so far), "
                    "so run the same command again"
                )
            raise RunError(
                f"the engine died again and no restart is left ({died}); see the logs of the engine; {remedy}"
            )
        self._restarts_left -= 1
        self._started = False
        log.warning("the engine died (%s) and is restarted; %d restarts left", died, self._restarts_left)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def _retrieved(loading: "asyncio.Task[None]") -> None:
    if not loading.cancelled():
        loading.exception()
