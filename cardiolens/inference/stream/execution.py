"""Execute a placement: every model starts as soon as its GPUs are free, and its progress is reported."""

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise

from cardiolens.base.errors import InputError, RunError
from cardiolens.inference.placement.placement import Deployment, Placement, Seating
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.pipeline import Report, Streamed, stream
from cardiolens.runtime import stopping
from cardiolens.runtime.stopping import StoppedError

Watch = Callable[[str, Missing], Callable[["Standing"], None]]
"""Called when a model begins; returns a function that receives a Standing after each finished study."""


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


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Span:
    """The time in which a model ran, in seconds from the start of the execution."""

    began: float
    up: float  # when the engines were ready, averaged over replicas
    ended: float


@dataclass(slots=True)
class Executed:
    """Counters and times of the models that ran, and why other models did not run."""

    streamed: dict[str, Streamed] = field(default_factory=dict)  # by model
    spans: dict[str, Span] = field(default_factory=dict)  # by model
    failed: dict[str, str] = field(default_factory=dict)  # reason, by model that could not run
    seconds: float = 0.0

    @property
    def counters(self) -> dict[str, Counter[str]]:
        return {name: streamed.counters for name, streamed in self.streamed.items()}

    @property
    def load_seconds(self) -> float:
        """Seconds in which models were loading and no engine was up."""
        return seconds_of_loading(self.spans.values())


def execute(
    plan: Plan, placement: Placement, missing: Mapping[str, Missing], watches: Sequence[Watch] = ()
) -> Executed:
    """Run every model, and show its progress to every watch.

    The error of a model that fails is raised; with `keep_going` it is recorded and the other models run. If
    the process is asked to stop, running models end early and no other model begins.
    """
    started = time.monotonic()
    executed = Executed(failed=dict(placement.refusals))
    seating, waiting = Seating(placement.nodes), list(placement.deployments)
    running: dict[str, tuple[Deployment, float]] = {}  # with the second in which the model began
    ended: queue.Queue[tuple[str, Streamed | BaseException]] = queue.Queue()
    at_once = max(map(len, placement.waves), default=1)  # or a few more, where waves overlap

    def run(deployment: Deployment, report: Report) -> None:
        """Drive the pipeline of one model; Ray divides the cluster."""
        outcome: Streamed | BaseException
        try:
            outcome = stream(plan, deployment, missing[deployment.model], report, at_once)
        except BaseException as error:  # noqa: BLE001 - passed to the thread that waits
            outcome = error
        ended.put((deployment.model, outcome))

    while running or waiting:
        if stopping.stop_requested():
            waiting.clear()
        for deployment in tuple(waiting):
            if seating.take(deployment):
                waiting.remove(deployment)
                running[deployment.model] = deployment, time.monotonic() - started
                report = begin_watches(watches, deployment.model, missing[deployment.model])
                threading.Thread(target=run, args=(deployment, report), daemon=True).start()
        assert running or not waiting, "a placed model fits when no other model runs"
        if running:
            name, outcome = ended.get()
            deployment, began = running.pop(name)
            if isinstance(outcome, Streamed):
                up = began + outcome.counters["load_ms"] / 1000 / deployment.replicas
                executed.streamed[name] = outcome
                executed.spans[name] = Span(began, up, time.monotonic() - started)
            else:
                executed.failed[name] = _reason(name, outcome, keep_going=plan.spec.keep_going)
            seating.give_back(deployment)
    executed.seconds = time.monotonic() - started
    return executed


def _reason(name: str, error: BaseException, *, keep_going: bool) -> str:
    """Return why a model failed, on one line; raise the error unless other models go on."""
    if isinstance(error, StoppedError) or not isinstance(error, Exception):
        raise error
    if not keep_going and isinstance(error, RunError):
        raise RunError(f"model {name}: {error}") from error
    if not keep_going:
        raise error
    text = " ".join(str(error).split())
    reason = text if isinstance(error, RunError | InputError) else f"{type(error).__name__}: {text}"
    log.warning("model %s is left out: %s", name, reason)
    return reason


def seconds_of_loading(spans: Iterable[Span]) -> float:
    """Return the seconds in which at least one model was loading and none was up."""
    spans = tuple(spans)
    moments = sorted({moment for span in spans for moment in (span.began, span.up, span.ended)})
    return sum(
        until - since
        for since, until in pairwise(moments)
        if any(span.began <= since < span.up for span in spans)
        and not any(span.up <= since < span.ended for span in spans)
    )
