"""How far the models of a sweep are while they run."""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cardiolens.engine.ask import ErrorKind
from cardiolens.plan.missing import Missing

Tell = Callable[[Counter[str]], None]
"""Takes the counters of one finished study."""

Watch = Callable[[str, Missing], Callable[["Standing"], None]]
"""Begins with a model: what it returns is told how far the model is, whenever it has finished a study."""

Begin = Callable[[str, Missing], Tell]
"""Begins with a model, on behalf of everybody who watches it."""


@dataclass(frozen=True, slots=True)
class Standing:
    """One model so far; `counters` are those of its replicas, of studies that are finished."""

    unique: int  # distinct requests planned
    reused: int  # of these, answered before
    left: int  # of these, to execute when it began
    counters: Mapping[str, int]
    seconds: float  # since its slowest engine was up; 0 until that is known

    @property
    def executed(self) -> int:
        return sum(self.counters.get(name, 0) for name in ("ok", "refused", "error"))

    @property
    def done(self) -> int:
        return self.reused + self.executed

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.executed / self.seconds if self.seconds > 0 else 0.0

    @property
    def tokens_per_second(self) -> float:
        """Computed ones: what came from the cache is left out."""
        of = Counter(self.counters)
        computed = of["prompt_tokens"] - of["cached_tokens"] + of["output_tokens"]
        return computed / self.seconds if self.seconds > 0 else 0.0

    @property
    def note(self) -> str:
        """All but the model and how much is done, in words: rate, tokens, caches, failures, time left."""
        rate = (f"{self.rate:.1f}/s",) if self.rate else ()
        said = [f"{self.reused:,} reused", *rate, *self._work(), *self._failures()]
        if self.rate and self.executed < self.left:
            seconds = (self.left - self.executed) / self.rate
            said.append(f"{timedelta(seconds=round(seconds))} left")
        return ", ".join(said)

    def _work(self) -> Iterator[str]:
        """What simulated readers have none of: tokens and frames, computed or from a cache."""
        of = Counter(self.counters)
        if not of["prompt_tokens"]:
            return
        if self.seconds > 0:
            yield f"{self.tokens_per_second:,.0f} tokens/s"
        cached = f"from cache {of['cached_tokens'] / of['prompt_tokens']:.0%} of prompt tokens"
        if of["frames_referenced"]:
            cached += f" and {1 - of['frames_processed'] / of['frames_referenced']:.0%} of frames"
        yield cached

    def _failures(self) -> Iterator[str]:
        if refused := self.counters.get("refused", 0):
            yield f"{refused:,} refused"
        if failed := self.counters.get("error", 0):
            kinds = "; ".join(f"{n:,} {kind}" for kind in ErrorKind if (n := self.counters.get(kind, 0)))
            yield f"{failed:,} failed ({kinds})" if kinds else f"{failed:,} failed"


def begin_watches(watches: Sequence[Watch], model: str, missing: Missing) -> Tell:
    """Begin every watch over a model; the counters of its finished studies are told to all of them."""
    watched = WatchedModel(missing)
    tellers = [watch(model, missing) for watch in watches]

    def tell(counters: Counter[str]) -> None:
        standing = watched.add(counters)
        for teller in tellers:
            teller(standing)

    return tell


class WatchedModel:
    """What the replicas of one model told so far."""

    def __init__(self, missing: Missing) -> None:
        self._missing = missing
        self._began = time.monotonic()
        self._load_seconds = 0.0
        self._counters: Counter[str] = Counter()

    def add(self, counters: Counter[str]) -> Standing:
        self._counters.update(counters)
        self._load_seconds = max(self._load_seconds, counters["load_ms"] / 1000)
        up = self._counters["engine_starts"] > 0  # told with one of the first studies, not always the first
        return Standing(
            unique=self._missing.unique,
            reused=self._missing.done,
            left=self._missing.left,
            counters=Counter(self._counters),
            seconds=time.monotonic() - self._began - self._load_seconds if up else 0.0,
        )
