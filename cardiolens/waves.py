"""Executes a placement: the models of a wave side by side, one wave after another."""

import logging
import queue
import threading
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from cardiolens import show
from cardiolens.engine.placement import Group, Placement, Wave
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
    """Run every wave; RunError when a model fails, unless `keep_going`: then it is named, the rest runs."""
    started = time.monotonic()
    executed = Executed(failed={refused.model: refused.reason for refused in placement.refusals})
    for wave in placement.waves:
        with show.progress_of({group.model: missing[group.model].left for group in wave}) as progress:
            _run_wave(plan, wave, missing, progress, executed)
        loads = [_load_seconds(group, executed) for group in wave]
        executed.load_seconds += max(loads)
    executed.seconds = time.monotonic() - started
    return executed


def _run_wave(
    plan: Plan,
    wave: Wave,
    missing: Mapping[str, Missing],
    progress: Mapping[str, Progress],
    executed: Executed,
) -> None:
    """One thread a model drives its pipeline; Ray shares the cluster between them."""
    ended: queue.Queue[tuple[str, Streamed | BaseException]] = queue.Queue()

    def run(group: Group) -> None:
        name = group.model
        try:
            ended.put((name, stream(plan, group, missing[name], progress[name], len(wave))))
        except BaseException as error:  # noqa: BLE001 - handed to the thread that waits
            ended.put((name, error))

    for group in wave:
        threading.Thread(target=run, args=(group,), name=f"model {group.model}", daemon=True).start()
    for _ in wave:
        name, outcome = ended.get()
        if isinstance(outcome, Streamed):
            executed.streamed[name] = outcome
        elif isinstance(outcome, RunError) and plan.spec.keep_going:
            log.warning("model %s is left out: %s", name, outcome)
            executed.failed[name] = str(outcome)
        else:
            raise outcome


def _load_seconds(group: Group, executed: Executed) -> float:
    """Of one replica on average: they start side by side."""
    streamed = executed.streamed.get(group.model)
    return 0.0 if streamed is None else streamed.counters["load_ms"] / 1000 / group.replicas
