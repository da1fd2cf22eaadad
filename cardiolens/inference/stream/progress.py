"""Progress of the models of a sweep while they run."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.missing import Missing

Tell = Callable[[Counter[str]], None]
"""Receives the counters of one finished study."""

Watch = Callable[[str, Missing], Callable[["Standing"], None]]
"""Called when a model begins; returns a function that receives a Standing after each finished study."""

Begin = Callable[[str, Missing], Tell]
"""Called when a model begins; returns a function that receives the counters of each finished study."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Progress of one model so far."""

    unique: int  # distinct requests planned
    reused: int  # planned requests answered before this run
    left: int  # planned requests to execute when the model began
    counters: Mapping[str, int]  # sums over the finished studies of all replicas
    seconds: float  # since the slowest engine was up; 0 until an engine start was reported

    @property
    def executed(self) -> int:
        return sum(self.counters.get(name, 0) for name in ("ok", "refused", "illegal_selection", "error"))

    @property
    def done(self) -> int:
        return self.reused + self.executed

    @property
    def rate(self) -> float:
        """Requests per second."""
        return self.executed / self.seconds if self.seconds > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Computed tokens per second, without cached tokens."""
        counts = Counter(self.counters)
        computed = counts["prompt_tokens"] - counts["cached_tokens"] + counts["output_tokens"]
        return computed / self.seconds if self.seconds > 0 else 0.0

    @property
    def note(self) -> str:
        """Text beside the progress bar: reused requests, rate, tokens, caches, failures, time left."""
        rate = (f"{self.rate:.1f}/s",) if self.rate else ()
        parts = [f"{self.reused:,} reused", *rate, *self._work(), *self._failures()]
        if self.rate and self.executed < self.left:
            seconds = (self.left - self.executed) / self.rate
            parts.append(f"{timedelta(seconds=round(seconds))} left")
        return ", ".join(parts)

    def _work(self) -> Iterator[str]:
        """Yield tokens per second and the shares from caches; nothing for simulated readers."""
        counts = Counter(self.counters)
        if not counts["prompt_tokens"]:
            return
        if self.seconds > 0:
            yield f"{self.tokens_per_second:,.0f} tokens/s"
        cached = f"from cache {counts['cached_tokens'] / counts['prompt_tokens']:.0%} of prompt tokens"
        if counts["frames_referenced"]:
            cached += f" and {1 - counts['frames_processed'] / counts['frames_referenced']:.0%} of frames"
        yield cached

    def _failures(self) -> Iterator[str]:
        if refused := self.counters.get("refused", 0):
            yield f"{refused:,} refused"
        if failed := self.counters.get("error", 0):
            kinds = "; ".join(f"{n:,} {kind}" for kind in ErrorKind if (n := self.counters.get(kind, 0)))
            yield f"{failed:,} failed ({kinds})" if kinds else f"{failed:,} failed"


def begin_watches(watches: Sequence[Watch], model: str, missing: Missing) -> Tell:
    """Begin every watch over a model; return a function that passes the model's progress to all watches."""
    watched = WatchedModel(missing)
    tellers = [watch(model, missing) for watch in watches]

    def tell(counters: Counter[str]) -> None:
        standing = watched.add(counters)
        for teller in tellers:
            teller(standing)

    return tell


class WatchedModel:
    """Sum of the counters that the replicas of one model have reported."""

    def __init__(self, missing: Missing) -> None:
        self._missing = missing
        self._began = time.monotonic()
        self._load_seconds = 0.0
        self._counters: Counter[str] = Counter()

    def add(self, counters: Counter[str]) -> Standing:
        self._counters.update(counters)
        self._load_seconds = max(self._load_seconds, counters["load_ms"] / 1000)
        up = self._counters["engine_starts"] > 0  # a start is reported with one of the first studies
        return Standing(
            unique=self._missing.unique,
            reused=self._missing.done,
            left=self._missing.left,
            counters=Counter(self._counters),
            seconds=time.monotonic() - self._began - self._load_seconds if up else 0.0,
        )
