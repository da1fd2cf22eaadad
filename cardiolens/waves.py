"""Executes a placement: the models of a wave side by side, one wave after another."""

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from cardiolens import show, stopping
from cardiolens.engine.placement import Group, Placement
from cardiolens.errors import RunError
from cardiolens.plan.missing import Missing
from cardiolens.plan.plan import Plan
from cardiolens.stream import Progress, Streamed, stream

log = logging.getLogger(__name__)


@dataclass(slots=True)
class Executed:
    """What the waves did."""

    streamed: dict[str, Streamed] = field(default_factory=dict)  # by model
    failed: dict[str, str] = field(default_factory=dict)  # models that could not run, and why
    seconds: float = 0.0
    load_seconds: float = 0.0  # of these: until the slowest engine of each wave was up

    @property
    def counters(self) -> dict[str, Counter[str]]:
        return {name: streamed.counters for name, streamed in self.streamed.items()}


def execute(plan: Plan, placement: Placement, missing: Mapping[str, Missing]) -> Executed:
    """Run every wave; RunError when a model fails, unless `keep_going`: then it is named, the rest runs.

    A wave begins when the one before has left the machine; models behind a network are waited for at the end.
    Where the process is asked to stop, those that run end early and no other wave begins.
    """
    started = time.monotonic()
    executed = Executed(failed={refused.model: refused.reason for refused in placement.refusals})
    with show.progress() as begin:
        models = _Models(plan, missing, executed)
        for wave in placement.waves:
            if stopping.asked():
                break
            for group in wave:
                models.start(group, begin(group.model, missing[group.model].left), len(wave))
            models.wait_for({group.model for group in wave if group.needs != "network"})
        models.wait_for({group.model for wave in placement.waves for group in wave})
    executed.load_seconds = sum(
        max(_load_seconds(group, executed) for group in wave) for wave in placement.waves
    )
    executed.seconds = time.monotonic() - started
    return executed


class _Models:
    """The models that are running: a thread each drives its pipeline, Ray shares the cluster between them."""

    def __init__(self, plan: Plan, missing: Mapping[str, Missing], executed: Executed) -> None:
        self._plan = plan
        self._missing = missing
        self._executed = executed
        self._ended: queue.Queue[tuple[str, Streamed | BaseException]] = queue.Queue()
        self._running: set[str] = set()

    def start(self, group: Group, progress: Progress, beside: int) -> None:
        self._running.add(group.model)
        run = threading.Thread(
            target=self._run, args=(group, progress, beside), name=f"model {group.model}", daemon=True
        )
        run.start()

    def wait_for(self, models: set[str]) -> None:
        """Until these have ended; what ends meanwhile is noted too."""
        while models & self._running:
            name, outcome = self._ended.get()
            self._running.discard(name)
            if isinstance(outcome, Streamed):
                self._executed.streamed[name] = outcome
            elif isinstance(outcome, RunError) and self._plan.spec.keep_going:
                log.warning("model %s is left out: %s", name, outcome)
                self._executed.failed[name] = str(outcome)
            else:
                raise outcome

    def _run(self, group: Group, progress: Progress, beside: int) -> None:
        name = group.model
        try:
            self._ended.put((name, stream(self._plan, group, self._missing[name], progress, beside)))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            self._ended.put((name, error))


def _load_seconds(group: Group, executed: Executed) -> float:
    """Of one replica on average: they start side by side."""
    streamed = executed.streamed.get(group.model)
    return 0.0 if streamed is None else streamed.counters["load_ms"] / 1000 / group.replicas
