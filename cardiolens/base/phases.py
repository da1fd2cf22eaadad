"""Phases of long work: how much of each is done, reported to a listener if there is one."""

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Phase:
    """How far a phase has come: `done` of `total` units, or of an unknown number."""

    name: str  # what is done, e.g. "judging"
    unit: str  # of what, in the plural
    done: int
    total: int | None
    seconds: float  # since it began

    @property
    def seconds_left(self) -> float | None:
        """Seconds until its end if it goes on as it went so far."""
        if not self.total or not self.done or self.done >= self.total:
            return None
        return self.seconds / self.done * (self.total - self.done)

    @property
    def words(self) -> str:
        """The phase in words, e.g. `judging: 7 of 24 models, 0:03:10 left`."""
        of_total = f" of {self.total:,}" if self.total is not None else ""
        count = f": {self.done:,}{of_total} {self.unit}" if self.done or self.total is not None else ""
        left = self.seconds_left
        return f"{self.name}{count}{'' if left is None else f', {timedelta(seconds=round(left))} left'}"


Listener = Callable[[Phase], None]
_listener: ContextVar[Listener | None] = ContextVar("listener", default=None)


@contextmanager
def heard_by(listener: Listener) -> Iterator[None]:
    """Have a listener hear of every phase that this block of code goes through."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def phase(name: str, unit: str, items: Iterable[T], total: int | None = None) -> Iterator[T]:
    """Yield the items of a phase; the listener hears of its begin and of each item that is done."""
    if total is None and isinstance(items, Collection):
        total = len(items)
    listener = _listener.get()
    if listener is None:
        yield from items
        return
    began = time.monotonic()
    listener(Phase(name, unit, 0, total, 0.0))
    for done, item in enumerate(items, start=1):
        yield item
        listener(Phase(name, unit, done, total, time.monotonic() - began))


def begin(name: str) -> None:
    """Have the listener hear that work begins which has no parts to count."""
    for _ in phase(name, "", iter(())):
        pass
