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
from cardiolens.inference.placement.placement import Deployment, Placement, Seating, schedule
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.pipeline import Streamed, stream
from cardiolens.inference.stream.progress import Begin, Report
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
    seating, waiting = Seating(placement.nodes), list(placement.deployments)
    running: dict[str, tuple[Deployment, float]] = {}  # with the second in which the model began
    ended: queue.Queue[tuple[str, Streamed | BaseException]] = queue.Queue()
    at_once = schedule(placement).at_once

    def run(deployment: Deployment, report: Report) -> None:
        """Drive the pipeline of one model; Ray divides the cluster."""
        try:
            ended.put(
                (deployment.model, stream(plan, deployment, missing[deployment.model], report, at_once))
            )
        except BaseException as error:  # noqa: BLE001 - passed to the thread that waits
            ended.put((deployment.model, error))

    while running or waiting:
        if stopping.stop_requested():
            waiting.clear()
        for deployment in tuple(waiting):
            if seating.take(deployment):
                waiting.remove(deployment)
                running[deployment.model] = deployment, time.monotonic() - started
                report = begin(deployment.model, missing[deployment.model])
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
            seating.give_back(name)
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
