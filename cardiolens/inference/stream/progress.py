"""Progress of the models of a sweep while they run."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cardiolens.inference.plan.missing import Missing

Report = Callable[[Counter[str]], None]
"""Receives the counters of one finished study."""

Watch = Callable[[str, Missing], Callable[["Standing"], None]]
"""Called when a model begins; returns a function that receives a Standing after each finished study."""

Begin = Callable[[str, Missing], Report]
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
        """Text beside the progress bar: reused requests, rates, failures, time left."""
        parts = [f"{self.reused:,} reused"]
        if self.rate:
            parts.append(f"{self.rate:.1f}/s")
        if self.tokens_per_second:
            parts.append(f"{self.tokens_per_second:,.0f} tokens/s")
        for counter, name in (("refused", "refused"), ("error", "failed")):
            if number := self.counters.get(counter, 0):
                parts.append(f"{number:,} {name}")
        if self.rate and self.executed < self.left:
            parts.append(f"{timedelta(seconds=round((self.left - self.executed) / self.rate))} left")
        return ", ".join(parts)


def begin_watches(watches: Sequence[Watch], model: str, missing: Missing) -> Report:
    """Begin every watch over a model; return a function that passes the model's progress to all watches."""
    began = time.monotonic()
    total: Counter[str] = Counter()
    load_seconds = 0.0
    receivers = [watch(model, missing) for watch in watches]

    def report(counters: Counter[str]) -> None:
        nonlocal load_seconds
        total.update(counters)
        load_seconds = max(load_seconds, counters["load_ms"] / 1000)
        up = total["engine_starts"] > 0  # a start is reported with one of the first studies
        seconds = time.monotonic() - began - load_seconds if up else 0.0
        standing = Standing(missing.unique, missing.done, missing.left, Counter(total), seconds)
        for receive in receivers:
            receive(standing)

    return report
