"""Sweeps without Ray: what its workers do runs in this process, where every write is counted."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import nullcontext
from types import ModuleType
from typing import Any

import pyarrow as pa

from cardiolens.base.errors import RunError
from cardiolens.inference.placement.footprint import nodes_to_plan_with
from cardiolens.inference.placement.placement import Deployment
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream import execution, pipeline
from cardiolens.inference.stream.loader import counters_of
from cardiolens.runtime import processes
from cardiolens.workflow import sweep
from cardiolens.workflow.steps import preparation, prepare_studies


def run_in_one_process() -> None:
    """Replace Ray and worker processes by loops, in this process."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # `spread` then starts no workers
    replace_in(processes, _guarded=_guarded)
    replace_in(sweep, ray_cluster=nullcontext, nodes_of_ray=nodes_to_plan_with)
    replace_in(prepare_studies, ray_cluster=nullcontext, outcomes_of=_outcomes_of)
    replace_in(preparation, cpus_of_ray=lambda: 1)
    replace_in(execution, stream=_stream)


def replace_in(module: ModuleType, **replaced: object) -> None:
    """Replace names of a module, all of which it must have."""
    for name, value in replaced.items():
        assert hasattr(module, name), f"{module.__name__} has no {name}"
        setattr(module, name, value)


def _guarded(function: Callable[[Any], Any], items: Iterator[Any], *_: Any) -> Iterable[Any]:
    return map(function, items)


def _outcomes_of(tasks: Iterable[Callable[[], Any]]) -> Generator[Any, None, None]:
    for do in tasks:
        yield from do() or ()


def _stream(
    plan: Plan, deployment: Deployment, missing: Missing, report: pipeline.Report, n_models: int = 1
) -> pipeline.Streamed:
    return asyncio.run(_answered(plan, deployment, missing, report))


async def _answered(
    plan: Plan, deployment: Deployment, missing: Missing, report: pipeline.Report
) -> pipeline.Streamed:
    work = pipeline.ModelStream(plan, deployment, missing)
    reader, replica = work.loader(), work.make_replica()()
    total: Counter[str] = Counter()
    try:
        for row in range(missing.work.num_rows):
            async for done in replica(pa.concat_tables(reader(missing.work.slice(row, 1)))):
                total += counters_of(done)
                report(counters_of(done))
    except Exception as error:
        raise RunError(pipeline.cause_of(error)) from error
    return pipeline.Streamed(total, frozenset())
