"""Execute a placement: every model starts as soon as its GPUs are free."""

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from cardiolens.base.errors import InputError, RunError
from cardiolens.inference.placement.placement import Deployment, Placement
from cardiolens.inference.placement.schedule import Seating, schedule
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.pipeline import Streamed, stream
from cardiolens.inference.stream.progress import Begin, Tell
from cardiolens.runtime import stopping
from cardiolens.runtime.stopping import StoppedError

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


def execute(plan: Plan, placement: Placement, missing: Mapping[str, Missing], begin: Begin) -> Executed:
    """Run every model; `begin` is called when a model begins and returns the receiver of its counters.

    The error of a model that fails is raised; with `keep_going` it is recorded and the other models run. If
    the process is asked to stop, running models end early and no other model begins.
    """
    started = time.monotonic()
    executed = Executed(failed={refused.model: refused.reason for refused in placement.refusals})
    seating = Seating(placement.nodes)
    waiting = list(placement.deployments)
    at_once = schedule(placement).at_once
    models = _Models(plan, missing, executed, at_once)
    while models.running or waiting:
        if stopping.stop_requested():
            waiting.clear()
        for deployment in tuple(waiting):
            if seating.take(deployment):
                waiting.remove(deployment)
                models.start(deployment, begin(deployment.model, missing[deployment.model]))
        assert models.running or not waiting, "a placed model fits when no other model runs"
        if models.running:
            seating.give_back(models.await_end())
    executed.seconds = time.monotonic() - started
    return executed


class _Models:
    """Running models: one thread per model drives its pipeline, and Ray divides the cluster."""

    def __init__(self, plan: Plan, missing: Mapping[str, Missing], executed: Executed, at_once: int) -> None:
        self._plan = plan
        self._missing = missing
        self._executed = executed
        self._at_once = at_once
        self._began_at = time.monotonic()
        self._ended: queue.Queue[tuple[str, Streamed | BaseException]] = queue.Queue()
        self.running: dict[str, tuple[Deployment, float]] = {}  # by model; the float is its begin in seconds

    def start(self, deployment: Deployment, tell: Tell) -> None:
        self.running[deployment.model] = deployment, self._now()
        run = threading.Thread(
            target=self._run, args=(deployment, tell), name=f"model {deployment.model}", daemon=True
        )
        run.start()

    def await_end(self) -> str:
        """Wait for the next model that ends, record its outcome and return its name.

        A failure is raised, or recorded with `keep_going`.
        """
        name, outcome = self._ended.get()
        deployment, began = self.running.pop(name)
        if isinstance(outcome, Streamed):
            self._executed.streamed[name] = outcome
            up = began + outcome.counters["load_ms"] / 1000 / deployment.replicas
            self._executed.spans[name] = Span(began, up, self._now())
        elif isinstance(outcome, StoppedError) or not isinstance(outcome, Exception):
            raise outcome
        elif self._plan.spec.keep_going:
            reason = _reason(outcome)
            log.warning("model %s is left out: %s", name, reason)
            self._executed.failed[name] = reason
        elif isinstance(outcome, RunError):
            raise RunError(f"model {name}: {outcome}") from outcome
        else:
            raise outcome
        return name

    def _now(self) -> float:
        return time.monotonic() - self._began_at

    def _run(self, deployment: Deployment, tell: Tell) -> None:
        name = deployment.model
        try:
            streamed = stream(self._plan, deployment, self._missing[name], tell, self._at_once)
            self._ended.put((name, streamed))
        except BaseException as error:  # noqa: BLE001 - passed to the thread that waits
            self._ended.put((name, error))


def _reason(error: Exception) -> str:
    """Return why a model failed, on one line; with the error type unless the message is made for users."""
    text = " ".join(str(error).split())
    return text if isinstance(error, RunError | InputError) else f"{type(error).__name__}: {text}"


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
