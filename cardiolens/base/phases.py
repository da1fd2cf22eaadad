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
    """How far a phase has come: `done` of `total` units; work without parts to count has no total."""

    name: str  # what is done, e.g. "judging"
    unit: str = ""  # of what, in the plural
    done: int = 0
    total: int | None = None
    seconds: float = 0.0  # since it began

    @property
    def words(self) -> str:
        """The phase in words, with the time left at this rate: `judging: 7 of 24 models, 0:03:10 left`."""
        if self.total is None:
            return self.name
        left = ""
        if 0 < self.done < self.total:
            seconds = round(self.seconds / self.done * (self.total - self.done))
            left = f", {timedelta(seconds=seconds)} left"
        return f"{self.name}: {self.done:,} of {self.total:,} {self.unit}{left}"


Listener = Callable[[Phase], None]
_listener: ContextVar[Listener] = ContextVar("listener", default=lambda phase: None)


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
    began = time.monotonic()
    hear = _listener.get()
    hear(Phase(name, unit, 0, total))
    for done, item in enumerate(items, start=1):
        yield item
        hear(Phase(name, unit, done, total, time.monotonic() - began))


def begin(name: str) -> None:
    """Have the listener hear that work begins which has no parts to count."""
    _listener.get()(Phase(name))
