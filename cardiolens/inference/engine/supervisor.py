"""Supervise an engine: limit its restarts, and find the request that kills it."""

import asyncio
import logging
import math
import time
from collections import Counter
from collections.abc import Collection

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

log = logging.getLogger(__name__)

RESTARTS = 6  # of the engine of one replica in a run
_CROWD, _FEW, _ALONE = range(3)  # among how many a request is asked
_MOST = (math.inf, 16, 1)  # requests in flight


class Supervisor:
    """One engine, shared by concurrent requests.

    When the engine dies, it is started again, and each request that was in flight is asked once more: alone,
    or among 16 if there were more; if the engine dies of these, each of them is asked alone. Other requests
    wait meanwhile. A request that kills the engine alone ends in RequestError. Requests in `killed_before`,
    which killed an engine in an earlier run, are asked alone at once.
    """

    def __init__(
        self,
        engine: Engine,
        max_restarts: int,
        killed_before: Collection[str] = (),
        counters: Counter[str] | None = None,
    ) -> None:
        self.is_up = False  # the engine was started and did not die since
        self.counters = Counter[str]() if counters is None else counters  # engine_starts, and their load_ms
        self._engine = engine
        self._killed_before = killed_before
        self._restarts_left = max_restarts
        self._killers = 0  # requests that killed the engine alone
        self._loading: asyncio.Task[None] | None = None
        self._open: Counter[int] = Counter()  # requests without a reply, by the crowd that each is asked in
        self._in_flight: Counter[int] = Counter()  # those of them that the engine has
        self._smaller = _ALONE  # among how many those in flight at the last death are asked again
        self._over: Exception | None = None  # why nothing more is asked
        self._changed = asyncio.Event()  # replaced at each change

    def stop(self) -> None:
        """Send no more requests to the engine; requests in flight may finish, and none waits for a start."""
        self._over = self._over or NotAskedError()
        self._change()

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        """Ask the engine and return its reply.

        RequestError if the engine cannot answer this request, RunError if it died too often, NotAskedError
        after `stop`.
        """
        crowd = _ALONE if ask.request_key in self._killed_before else _CROWD
        while True:
            self._open[crowd] += 1
            try:
                return await self._asked(ask, pictures, crowd)
            except EngineDeadError as error:
                if crowd == _ALONE:
                    raise self._convicted(ask, error) from error
                self._bury(error)
            finally:
                self._open[crowd] -= 1
                self._change()
            crowd = self._smaller

    async def _asked(self, ask: Ask, pictures: Pictures, crowd: int) -> Reply:
        """Ask the engine once, when it is up and its crowd may be asked."""
        while self._over is None and not (self.is_up and self._may_be_asked(crowd)):
            if not self.is_up and self._loading is None and self._may_be_asked(crowd):
                self._loading = asyncio.create_task(self._load())
            await self._changed.wait()
        if self._over is not None:
            raise self._over.with_traceback(None)  # one error for all, not a chain of their frames
        self._in_flight[crowd] += 1
        try:
            return await self._engine.answer(ask, pictures)
        finally:
            self._in_flight[crowd] -= 1

    def _may_be_asked(self, crowd: int) -> bool:
        """Return whether no smaller crowd is open, no larger one in flight, and there is room in this one."""
        smaller_is_open = any(self._open[size] for size in range(crowd + 1, len(_MOST)))
        larger_in_flight = any(self._in_flight[size] for size in range(crowd))
        return not smaller_is_open and not larger_in_flight and self._in_flight[crowd] < _MOST[crowd]

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def _load(self) -> None:
        began = time.monotonic()
        try:
            await self._engine.start()
        except Exception as error:  # noqa: BLE001 - engines may raise anything
            lines = (line for line in str(error).splitlines() if line.strip())
            reason = next(lines, type(error).__name__)
            self._over = RunError(f"the engine could not be started: {reason}")
            self._over.__cause__ = error
        else:
            self.is_up = True
            self.counters["engine_starts"] += 1
            self.counters["load_ms"] += round(1000 * (time.monotonic() - began))
        self._loading = None
        self._change()

    def _convicted(self, ask: Ask, died: EngineDeadError) -> RequestError:
        """Return the error of a request that killed the engine alone."""
        message = f"{ErrorKind.KILLED} when asked alone ({died})"
        log.error("request %s %s", ask.request_key, message)
        self._killers += 1
        self._bury(died)
        return RequestError(ErrorKind.KILLED, message)

    def _bury(self, died: EngineDeadError) -> None:
        """Mark a dead engine for a restart at its next use; end the run if no restart is left."""
        if not self.is_up:  # another request that was in flight has done it
            return
        self.is_up = False
        self._smaller = _FEW if self._in_flight.total() >= _MOST[_FEW] else _ALONE
        if self._restarts_left:
            self._restarts_left -= 1
            log.warning("the engine died (%s) and is restarted; %d restarts left", died, self._restarts_left)
            return
        remedy = "lower max_num_seqs"
        if self._killers:
            remedy = (
                f"requests that kill it alone are recorded as failed ({self._killers} so far), "
                "so run the same command again"
            )
        self._over = RunError(
            f"the engine died again and no restart is left ({died}); see the logs of the engine; {remedy}"
        )
