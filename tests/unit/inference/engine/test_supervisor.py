"""The supervisor with engines that die by rule."""

import asyncio
from collections import Counter

import pytest

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
from cardiolens.inference.engine.supervisor import Supervisor


def ask(name: str) -> Ask:
    return Ask(name, "", "", (), "single", ("A", "B"), 8)


class Mortal(Engine):
    """Dies, with everything in flight, when a deadly request is asked, or once after so many replies."""

    def __init__(
        self, deadly: tuple[str, ...] = (), dies_after: int | None = None, refused: str = ""
    ) -> None:
        self.deadly, self.dies_after, self.refused = deadly, dies_after, refused
        self.starts = 0
        self.asked: Counter[str] = Counter()
        self.most_at_once = 0
        self._alive = asyncio.Event()
        self._open = 0
        self._replies = 0

    async def start(self) -> None:
        self.starts += 1
        self._dead = asyncio.Event()

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        self.asked[ask.request_key] += 1
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        dead = self._dead
        try:
            await asyncio.sleep(0)
            if ask.request_key in self.deadly or (self.dies_after or 1000) <= self._replies:
                self.dies_after = None
                dead.set()
            await asyncio.sleep(0)
            if dead.is_set():
                raise EngineDeadError("killed")
            if ask.request_key == self.refused:
                raise RequestError(ErrorKind.REJECTED, "too long")
            self._replies += 1
            return Reply(ask.request_key, "stop")
        finally:
            self._open -= 1


def asked_all(engine: Mortal, n: int, restarts: int = 6, killed_before: tuple[str, ...] = ()) -> list[object]:
    """Ask so many requests, 40 at once."""
    supervisor = Supervisor(engine, restarts, killed_before=killed_before)
    asks = _answers(supervisor, [ask(name) for name in names(n)], 40)
    return asyncio.run(asyncio.wait_for(asks, 60))


async def _answers(supervisor: Supervisor, asks: list[Ask], width: int) -> list[object]:
    """Ask with so many slots, as a replica does."""
    slots = asyncio.Semaphore(width)

    async def answer(one: Ask) -> Reply:
        async with slots:
            return await supervisor.answer(one, lambda key: None)  # type: ignore[arg-type, return-value]

    return await asyncio.gather(*map(answer, asks), return_exceptions=True)


def replies(found: list[object]) -> list[str]:
    return [one.text if isinstance(one, Reply) else type(one).__name__ for one in found]


def names(n: int) -> list[str]:
    return [f"r{number}" for number in range(n)]


@pytest.mark.parametrize("position", [0, 40])
def test_the_request_that_kills_the_engine_is_isolated(position: int) -> None:
    deadly = f"r{position}"
    engine = Mortal(deadly=(deadly,))
    found = asked_all(engine, 100)
    assert replies(found) == [name if name != deadly else "RequestError" for name in names(100)]
    assert engine.asked[deadly] == 3, "killed in the crowd, in a small group, and alone"
    assert engine.starts in {3, 4}, "rebuilt after each death where somebody still waited"
    assert "alone" in str(found[position])


def test_a_death_without_a_guilty_request_costs_one_rebuild() -> None:
    engine = Mortal(dies_after=30)
    found = asked_all(engine, 100)
    assert replies(found) == names(100)
    assert engine.starts == 2


class KilledFromOutside(Mortal):
    """Dies once, a moment after its first request came, while others are in flight or wait."""

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        if ask.request_key == "first" and self.asked["first"] == 0:
            self.asked["first"] += 1
            self._open += 1
            await asyncio.sleep(0.01)
            self._open -= 1
            self._dead.set()
            raise EngineDeadError("killed from outside")
        return await super().answer(ask, pictures)


def test_a_request_that_killed_before_waits_for_what_is_in_flight() -> None:
    engine = KilledFromOutside()

    async def ask_later() -> list[object]:
        supervisor = Supervisor(engine, 6, killed_before=("again",))
        first = asyncio.create_task(_answers(supervisor, [ask("first")], 1))
        while not engine.asked["first"]:
            await asyncio.sleep(0)
        return [*await _answers(supervisor, [ask("again")], 1), *await first]

    assert replies(asyncio.run(asyncio.wait_for(ask_later(), 60))) == ["again", "first"]
    assert engine.starts == 2
    assert engine.most_at_once == 1


def test_a_request_that_killed_before_is_asked_alone_at_once() -> None:
    engine = Mortal(deadly=("r5",))
    found = asked_all(engine, 60, killed_before=("r5",))
    assert replies(found) == [name if name != "r5" else "RequestError" for name in names(60)]
    assert engine.asked["r5"] == 1


def test_everything_is_asked_once_and_a_refused_request_does_not_disturb_the_others() -> None:
    engine = Mortal(refused="r3")
    found = asked_all(engine, 100)
    assert replies(found) == [name if name != "r3" else "RequestError" for name in names(100)]
    assert engine.starts == 1
    assert engine.most_at_once == 40
    assert set(engine.asked.values()) == {1}


class Unstartable(Mortal):
    """Starts so often, and then no more."""

    def __init__(self, most_starts: int) -> None:
        super().__init__(dies_after=10)
        self._most_starts = most_starts

    async def start(self) -> None:
        await super().start()
        if self.starts > self._most_starts:
            raise OSError("no memory left")


@pytest.mark.parametrize(("starts", "answered"), [(0, 0), (1, 40)])
def test_an_engine_that_cannot_be_started_is_tried_once_and_an_error_for_everybody(
    starts: int, answered: int
) -> None:
    engine = Unstartable(starts)
    failed = [str(one) for one in asked_all(engine, 90) if isinstance(one, RunError)]
    assert len(failed) == 90 - answered
    assert all("no memory left" in message for message in failed)
    assert engine.starts == starts + 1


def test_rebuilding_is_bounded_and_nobody_waits_for_ever() -> None:
    engine = Mortal(deadly=tuple(names(50)))
    found = asked_all(engine, 50, restarts=3)
    assert engine.starts == 4
    assert all(isinstance(one, RunError | RequestError) for one in found)
    assert any("no restart is left" in str(one) for one in found)
    assert any("recorded as failed (2 so far)" in str(one) for one in found)
    assert not any("max_num_seqs" in str(one) for one in found), "fewer at once would not help"


class Slow(Mortal):
    """Loads at once the first time, and takes a minute to load again."""

    async def start(self) -> None:
        await super().start()
        if self.starts > 1:
            await asyncio.sleep(60)


@pytest.mark.parametrize("dies_after", [None, 10])
def test_a_stop_is_heard_while_the_engine_loads(dies_after: int | None) -> None:
    """First load or restart: what waits for the engine is not asked, and what was answered stays."""

    async def run() -> tuple[list[object], float]:
        engine = Slow(dies_after=dies_after)
        engine.starts = dies_after is None
        supervisor = Supervisor(engine, 6)
        asks = asyncio.create_task(_answers(supervisor, [ask(name) for name in names(40)], 8))
        while engine.starts < 2:
            await asyncio.sleep(0.01)
        supervisor.stop()
        began = asyncio.get_running_loop().time()
        return await asks, asyncio.get_running_loop().time() - began

    found, seconds = asyncio.run(run())
    answered = [one for one in found if isinstance(one, Reply)]
    assert len(answered) >= 10 if dies_after else not answered
    assert all(isinstance(one, Reply | NotAskedError) for one in found)
    assert seconds < 30
