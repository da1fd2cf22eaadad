"""The Ray Data pipeline of one model: missing work → read and render → replicas → completions."""

import asyncio
import logging
import queue
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base import disk
from cardiolens.base.errors import RunError
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import StreamSpec
from cardiolens.config.sweep_factors import Arm, arms_asking_back
from cardiolens.inference.engine.ask import Engine
from cardiolens.inference.engine.http.transport import way_to
from cardiolens.inference.engine.supervisor import RESTARTS
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.models.token_counts import Rendering
from cardiolens.inference.placement.placement import Deployment
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.loader import StudyLoader, counters_of
from cardiolens.inference.stream.replica import Replica, noticed
from cardiolens.inference.stream.replica_resources import (
    blocks,
    blocks_in_flight,
    bounded,
    most_studies,
    reserved,
)
from cardiolens.runtime import stopping
from cardiolens.storage import tables

if TYPE_CHECKING:
    from ray.data import Dataset

log = logging.getLogger(__name__)

Report = Callable[[Counter[str]], None]
"""Receives the counters of one finished study."""


@dataclass(frozen=True, slots=True)
class Streamed:
    """Counters of one model, summed over its replicas, and the replicas' seats."""

    counters: Counter[str]
    seats: frozenset[str]  # <Ray node>:<GPUs>, as `replica.seat` writes them


@dataclass(frozen=True, slots=True)
class ModelStream:
    """The missing requests of one model of a plan, and the replicas that answer them."""

    plan: Plan
    deployment: Deployment
    missing: Missing

    @property
    def model(self) -> ModelSpec:
        return next(model for model in self.plan.spec.model if model.name == self.deployment.model)

    @property
    def completions(self) -> Path:
        """The folder of the model's completions in the store."""
        return self.plan.store.completions(self.plan.identities[self.model.name].model_key)

    @property
    def width(self) -> int:
        """The number of requests in flight at one replica.

        vLLM: as many as the engine runs at once plus half as many queued, so that the engine never waits for
        work. HTTP: the configured maximum; the engine itself holds back requests that the server cannot take.
        """
        model = self.model
        return model.at_once if model.http else model.at_once + model.at_once // 2

    def loader(self) -> StudyLoader:
        return StudyLoader(self.plan.store.root, self.plan.volumes, Rendering(self.model.long_side))

    def make_replica(self) -> partial[Replica]:
        """Return what makes a replica, inside its actor."""
        plan, model = self.plan, self.model
        if model.engine == "http":
            log.info("model %s is asked at %s", model.name, way_to(model.served))
        make = partial(
            make_engine,
            model,
            plan.identities[model.name],
            self.deployment,
            arms={arm.arm_id: arm for arm in plan.arms if arm.model.name == model.name},
            max_frames=plan.most_frames[model.name],
            completions=self.completions,
            questions=plan.store.questions,
        )
        return partial(
            Replica,
            make,
            self.completions,
            self.width,
            plan.spec.stream,
            parts=pc.unique(self.missing.work["part"]).to_pylist(),
            questions=plan.store.questions,
            asking_back=arms_asking_back(plan.spec),
            read_back=self.missing.read_back,
            names_question=model.told_questions,
            load_volume=self.loader().volume,
        )

    @contextmanager
    def answers(self, n_models: int) -> Iterator[Iterable[pa.Table]]:
        """Begin the work; yield PROGRESS rows, of this process if it has joined no cluster.

        The blocks of work are the units that are read, answered and retried.
        """
        replicas = self.deployment.replicas
        most = most_studies(self.missing.work, replicas, self.width)
        work = blocks(self.missing.work, replicas, most)
        in_flight = blocks_in_flight(work, self.width, most)
        if not stopping.is_connected():
            yield answers_here(self.make_replica(), self.loader(), work, in_flight)
            return
        import ray

        make_replica = self.make_replica()
        batching = {"batch_size": None, "batch_format": "pyarrow", "zero_copy_batch": True}
        with reserved(self.deployment, in_flight, RESTARTS) as options:
            with bounded(n_models):
                read: Dataset = ray.data.from_arrow(work).map_batches(self.loader(), **batching)
                answered = read.map_batches_internal(  # `map_batches` takes no whole blocks where GPUs are
                    Replica,
                    fn_constructor_args=make_replica.args,
                    fn_constructor_kwargs=make_replica.keywords,
                    **batching,
                    **options,
                )
            yield answered.iter_batches(batch_size=None, batch_format="pyarrow")


def stream(
    plan: Plan, deployment: Deployment, missing: Missing, report: Report, n_models: int = 1
) -> Streamed:
    """Execute the missing requests of one model on its replicas; `n_models` models share the cluster.

    Ends early if the process is asked to stop. RunError if an engine cannot be started or dies too often, or
    if no request is completed for too long.
    """
    work = ModelStream(plan, deployment, missing)
    disk.make_folder(work.completions)
    total: Counter[str] = Counter()
    seats: set[str] = set()
    limit = _stall_limit(work.model, plan.spec.stream)
    with work.answers(n_models) as rows:
        for batch in _watched(rows, work.completions, limit, plan.spec.cluster.grace_seconds):
            counters = counters_of(batch)
            total += counters
            seats.update(batch["seat"].to_pylist())
            if counters["engine_starts"] and total["engine_starts"] > deployment.replicas:
                log.warning(
                    "model %s: an engine died and was restarted; Ray's logs have the cause", deployment.model
                )
            report(counters)
    return Streamed(total, frozenset(seats))


_LOADING = 9  # times as long may a model that loads be without a completion


def _stall_limit(model: ModelSpec, spec: StreamSpec) -> float:
    """Return the seconds without a completion after which a run ends: more where engines load."""
    return spec.stall_seconds * (1 if _loads_nothing(model) else _LOADING)


def _loads_nothing(model: ModelSpec) -> bool:
    """Return whether a model is a server, a person or a simulated reader."""
    return bool(model.http or model.simulated or model.engine == "person")


def make_engine(
    model: ModelSpec,
    identity: Identity,
    deployment: Deployment,
    *,
    arms: Mapping[str, Arm],
    max_frames: int,
    completions: Path,
    questions: Path,
) -> Engine:
    """Make the engine of a model, inside the actor: each imports what it needs there."""
    if model.engine == "vllm":
        from cardiolens.inference.engine.vllm_engine import VllmEngine

        shows_videos = any(arm.prompt.cine == "video" for arm in arms.values())
        return VllmEngine(model, identity, max_frames, deployment, shows_videos=shows_videos)
    if model.engine == "http":
        from cardiolens.inference.engine.http.engine import HttpEngine

        return HttpEngine(model, completions)
    from cardiolens.inference.engine.readers import open_engine, open_reader

    if model.plugged and not model.simulated:
        return open_engine(model)
    return open_reader(model, questions, arms)


def _watched(
    rows: Iterable[pa.Table], completions: Path, limit: float, grace_seconds: float
) -> Iterator[pa.Table]:
    """Yield rows as they come; RunError if neither a row nor a completion comes for `limit` seconds.

    Completions are noticed by their part files on disk. If the process is asked to stop, workers are
    notified, and the rows end after `grace_seconds` at the latest.
    """
    arrived: queue.Queue[pa.Table | BaseException | None] = queue.Queue()

    def consume() -> None:
        try:
            for batch in rows:
                arrived.put(batch)
            arrived.put(None)
        except BaseException as error:  # noqa: BLE001 - passed to the thread that waits
            arrived.put(error)

    threading.Thread(target=consume, name="stream", daemon=True).start()
    parts, since, notified = len(tables.parts(completions)), time.monotonic(), False
    while True:
        if stopping.stop_requested():
            if not notified:
                stopping.notify_workers()
                notified = True
            if stopping.seconds_since() > grace_seconds:
                return
        try:
            item = arrived.get(timeout=min(1.0, limit / 4))
        except queue.Empty:
            if (now := len(tables.parts(completions))) != parts:
                parts, since = now, time.monotonic()
            if time.monotonic() - since > limit:
                raise RunError(
                    f"no request was completed for {limit:g} s; the engine hangs, loads or is too slow: see "
                    "its logs, or raise stream.stall_seconds; what was completed is kept, run again"
                ) from None
            continue
        if item is None:
            return
        if isinstance(item, BaseException):
            raise RunError(cause_of(item)) from item
        since = time.monotonic()
        yield item


def cause_of(error: BaseException) -> str:
    """Return the message of the innermost error that has one.

    Ray wraps an error of a worker several times and prints the whole chain as one text.
    """
    while error.__cause__ is not None and str(error.__cause__):  # Ray Data's own wrapper is empty
        error = error.__cause__
    errors = [(kind, text) for kind, text in _ERROR_LINE.findall(str(error)) if kind not in _WRAPPERS]
    if errors:
        kind, text = errors[-1]
        reason = text if kind.startswith("cardiolens.") else f"{kind}: {text}{_REMEDIES.get(kind, '')}"
        return f"the stream ended early: {reason}"
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"the stream ended early: {lines[-1] if lines else type(error).__name__}"


_ERROR_LINE = re.compile(r"^([\w.]*(?:Error|Exception)): (.*\S)", re.MULTILINE)
_REMEDIES = {
    "ray.exceptions.OutOfDiskError": " where Ray stores frames that do not fit in its memory; raise "
    "RAY_DEFAULT_OBJECT_STORE_MEMORY_PROPORTION (0.3), or free space in /tmp",
}
_WRAPPERS = ("ray.exceptions.UserCodeException", "UserCodeException")


_MOST = 500  # requests; with more, the start of Ray no longer counts, and its readers keep up with any server


def need_no_cluster(plan: Plan, remaining: Mapping[str, Missing]) -> bool:
    """Return whether all missing requests are few and go to servers, or to readers without files beside them.

    Not if a cluster was named.
    """
    left = {name: work.left for name, work in remaining.items() if work.left}
    return (
        plan.spec.cluster.address is None
        and any(model.http for model in plan.spec.model)
        and left.keys() <= {model.name for model in plan.spec.model if _loads_nothing(model)}
        and sum(left.values()) <= _MOST
    )


def answers_here(
    make_replica: Callable[[], Replica], loader: StudyLoader, work: Sequence[pa.Table], in_flight: int
) -> Iterator[pa.Table]:
    """Yield PROGRESS rows of each block of work as it is finished, with `in_flight` blocks at once."""
    with asyncio.Runner() as runner:
        replica, places = make_replica(), asyncio.Semaphore(in_flight)

        async def answered(block: pa.Table) -> pa.Table:
            async with places:
                loaded = pa.concat_tables(await asyncio.to_thread(list, loader(block)))
                return pa.concat_tables([progress async for progress in replica(loaded)])

        running = {runner.get_loop().create_task(answered(block)) for block in work}
        for task in running:
            task.add_done_callback(noticed)
        try:
            while running:
                finished, running = runner.run(asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED))
                for task in finished:
                    yield task.result()
        finally:
            runner.run(replica.close())
