"""A replica of a model in the stream: answers the requests of studies and writes their completions."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cardiolens.base.errors import RunError
from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.ask import (
    Ask,
    Engine,
    FrameWork,
    NotAskedError,
    Numerics,
    Reply,
    RequestError,
)
from cardiolens.inference.engine.supervisor import RESTARTS, Supervisor
from cardiolens.inference.plan.missing import final_replies, killer_keys
from cardiolens.inference.stream.chain_walk import Completed, Settled, Walk
from cardiolens.inference.stream.loader import (
    PROGRESS,
    AskRow,
    CompletionRow,
    PictureRow,
    StudyAsks,
    ask_of,
    pixels_of,
    stage_counter,
    studies_of,
)
from cardiolens.inference.stream.writer import CompletionWriter
from cardiolens.protocol.dialogue.asking_back import DisplayedChoice, option_texts
from cardiolens.protocol.dialogue.chain import Chain, FrameRef
from cardiolens.protocol.dialogue.chain_tables import known_steps, read_part_chains
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.runtime import stopping

_LISTEN_SECONDS = 0.5
_OF_REPLY = (
    *("text", "reasoning", "finish_reason", "seconds"),
    *("prompt_tokens", "cached_tokens", "output_tokens"),
)
_PARTS = 4  # of which the chains are kept

LoadVolume = Callable[[str, str], Mapping[int, PictureRow]]
"""Read and render all frames of a volume, given study_id and volume_id; rows by idx."""


class StudyInFlight:
    """A study in flight at the replica, with its frames by key.

    A volume is read when a reader asks for one of its frames: those that a reader will choose are unknown
    when the study is loaded, and all would be too many.
    """

    def __init__(self, study: StudyAsks, n_asks: int, load: LoadVolume | None) -> None:
        self.open = n_asks  # asks without a reply; at 0 the study waits for the disk
        self._study_id = study["study_id"]
        self._load = load
        self._rows = {row["key"]: row for row in study["pictures"]}
        self._volumes: dict[str, asyncio.Future[Mapping[int, str]]] = {}  # by volume_id: key by idx

    def __call__(self, key: str) -> np.ndarray:
        return pixels_of(self._rows[key])

    async def keys_of(self, frames: Sequence[FrameRef]) -> tuple[str, ...]:
        """Load the volumes of frames if necessary, and return the frames' keys."""
        for volume_id in dict.fromkeys(frame.volume_id for frame in frames):
            if volume_id not in self._volumes:
                self._volumes[volume_id] = asyncio.ensure_future(self._read(volume_id))
            await asyncio.shield(self._volumes[volume_id])
        return tuple(self._volumes[frame.volume_id].result()[frame.idx] for frame in frames)

    async def _read(self, volume_id: str) -> Mapping[int, str]:
        assert self._load is not None, "a reader chose frames, but the replica has no load_volume"
        rows = await asyncio.to_thread(self._load, self._study_id, volume_id)
        self._rows |= {row["key"]: row for row in rows.values()}
        return {idx: row["key"] for idx, row in rows.items()}


@dataclass(frozen=True, slots=True)
class _PlannedAsk:
    """A request with its chain, with what reads its reply if it asks back, and with its stored completion."""

    ask: Ask
    chain: Chain | None
    choice: DisplayedChoice | None
    stored: Completed | None


class Replica:
    """Callable for Ray Data: a block of STUDY_ASKS rows in, one PROGRESS row per study out.

    Several calls are in flight at once, so the engine passes from one block to the next without idling. A
    call returns when all its completions are on disk. After the run is asked to stop, only requests that the
    engine has already begun are completed.
    """

    def __init__(
        self,
        make_engine: Callable[[], Engine],
        completions: Path,
        width: int,
        stream: StreamSpec,
        *,
        parts: Sequence[str] = (),  # of `requests`: stages of their chains may be in the store
        questions: Path | None = None,  # of the store, whose options are read for arms that ask back
        asking_back: Collection[str] = (),  # these arms
        read_back: Collection[str] = (),  # keys of stored replies that they ask back
        names_question: bool = False,  # whether the engine is given arm and question: truth, readings
        load_volume: LoadVolume | None = None,  # needed if readers choose their frames
    ) -> None:
        self._engine = make_engine()
        killers = killer_keys(completions) if self._engine.mortal else frozenset()
        self._supervisor = Supervisor(self._engine, RESTARTS, killers)
        # Of asks: a chain keeps its slot, as the engine's caches hold its frames only for a while.
        self._slots = asyncio.Semaphore(width)
        self._writer = CompletionWriter(completions, stream.flush_rows, stream.flush_seconds)
        self._node = os.uname().nodename
        self._names_question, self._asking_back = names_question, asking_back
        self._texts = option_texts(questions) if questions is not None and asking_back else {}
        # After a restart, Ray sends this actor its unfinished studies once more.
        self._answered = final_replies(completions, None if _is_restarted() else read_back)
        self._known = known_steps(parts, completions)  # after a restart, the store has more of them
        self._chains = lru_cache(maxsize=_PARTS)(read_part_chains)
        self._load_volume = load_volume
        self._studies: set[StudyInFlight] = set()
        self._settling: set[asyncio.Task[Settled | None]] = set()  # asks with no completion on disk yet
        self._frames_reported = FrameWork()
        self._unreported: Counter[str] = Counter()
        self._listening: asyncio.Task[None] | None = None
        self._stopped = False

    async def __call__(self, block: pa.Table) -> AsyncIterator[pa.Table]:
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        finished = await asyncio.gather(*map(self._study, studies_of(block)))
        yield pa.Table.from_pylist(finished, schema=PROGRESS)

    async def close(self) -> None:
        """End the engine; one in an actor ends with the actor's process."""
        others = asyncio.all_tasks()
        if self._supervisor.is_up:
            self._engine.close()
        await asyncio.gather(*asyncio.all_tasks() - others)

    async def _listen(self) -> None:
        while not await asyncio.to_thread(stopping.driver_stopping):
            await asyncio.sleep(_LISTEN_SECONDS)
        self._stop()

    def _stop(self) -> None:
        """Send nothing more; what was answered is written soon."""
        self._stopped = True
        self._supervisor.stop()
        self._writer.flush_soon()

    async def _study(self, study: StudyAsks) -> dict[str, object]:
        chained = any(row["stage"] for row in study["asks"])
        chains = await asyncio.to_thread(self._chains, Path(study["part"])) if chained else {}
        every = [self._planned(row, chains) for row in study["asks"]]
        asks = [planned for planned in every if planned.stored is None or planned.choice is not None]
        settled = await self._settle_all(asks, StudyInFlight(study, len(asks), self._load_volume))
        counters, self._unreported = self._unreported, Counter()
        counters.update("error" if row["status"] == "engine_error" else row["status"] for row, _ in settled)
        counters.update(error_kind for _, error_kind in settled if error_kind is not None)
        frames, before = self._engine.frames(), self._frames_reported
        self._frames_reported = frames
        starts, load_seconds = self._supervisor.take_starts()
        counters.update(
            frames_processed=frames.processed - before.processed,
            frames_encoded=frames.encoded - before.encoded,  # runs of the vision encoder
            engine_starts=starts,
            load_ms=round(1000 * load_seconds),
        )
        return {"study_id": study["study_id"], "seat": seat(), "counters": list(counters.items())}

    def _planned(self, row: AskRow, chains: Mapping[str, Chain]) -> _PlannedAsk:
        """Return a request; stored is a final completion from before this run or this replica began."""
        ask, choice = ask_of(row, names_question=self._names_question), None
        if row["arm_id"] in self._asking_back and row["answer_type"] not in OPEN:
            form = row["answer_type"], ask.option_keys, tuple(row["exclusive"])
            choice = DisplayedChoice.of(*form, self._texts[row["qa_id"]])
        stored = self._answered.get(ask.request_key)
        return _PlannedAsk(ask, chains.get(ask.request_key), choice, stored)

    async def _settle_all(self, asks: Sequence[_PlannedAsk], study: StudyInFlight) -> list[Settled]:
        """Settle all asks of a study; leave out asks that were not sent because the run stopped.

        An error is raised only after every completion in flight, of all studies, is on disk.
        """
        walk = Walk(self._known, partial(self._step, study), study.keys_of)
        tasks = [asyncio.create_task(self._settle(planned, study, walk)) for planned in asks]
        self._studies.add(study)
        self._settling.update(tasks)
        for task in tasks:
            task.add_done_callback(self._settling.discard)
        try:
            all_settled = await asyncio.gather(*tasks)
            self._unreported["not_shown"] += walk.not_shown
            return [settled for settled in all_settled if settled is not None]
        except Exception:
            while self._settling:
                await asyncio.wait(self._settling)
            raise
        finally:
            self._studies.discard(study)

    def _most_wait_for_disk(self) -> bool:
        """Return whether most studies only wait for the disk, and so block studies with open asks."""
        return 2 * sum(not study.open for study in self._studies) > len(self._studies)

    async def _settle(self, planned: _PlannedAsk, study: StudyInFlight, walk: Walk) -> Settled | None:
        """Wait until the answer is on disk; None if a request was not sent because the run stopped."""
        try:
            async with self._slots:
                settled = await self._answer(planned, study, walk)
        except NotAskedError:
            return None
        except RunError:
            self._writer.flush_soon()
            raise
        except Exception:  # not a failure that engines announce: send, and pay for, nothing more
            self._stop()
            raise
        finally:
            study.open -= 1
        if settled is None:
            return None
        row, error_kind = self._identified(planned.ask) | settled[0], settled[1]
        pending_write = self._writer.add(row)
        if self._stopped or (not study.open and self._most_wait_for_disk()):
            self._writer.flush_soon()
        await pending_write
        return row, error_kind

    async def _answer(self, planned: _PlannedAsk, study: StudyInFlight, walk: Walk) -> Settled | None:
        """Ask a request or a chain, and ask back after a reply that cannot be read; None if nothing is left.

        The first completion is queued for the disk before the second turn is asked.
        """
        ask, stored = planned.ask, planned.stored
        settled: Settled | None = None
        if planned.chain is not None:  # also if stored: the second turn shows what its last stage showed
            settled = await walk.go(ask, planned.chain)
        elif stored is None:
            settled = await self._complete(ask, study)
        first = stored or (settled and settled[0]) or {}
        turn = None
        if planned.choice is not None and first.get("status") == "ok":
            text, finish_reason = first["text"] or "", first["finish_reason"] or ""
            turn = planned.choice.second_turn(ask.request_key, text, finish_reason)
        if turn is None or turn.request_key in self._answered:
            return None if stored else settled
        last = walk.last.get(ask.request_key, ask)
        second = replace(
            last,
            request_key=turn.request_key,
            text=last.text + turn.ending,
            constraint=turn.constraint,
            attempt=ask.attempt if stored else 1,
        )
        pending = [] if stored or not settled else [self._writer.add(self._identified(ask) | settled[0])]
        self._unreported["asked_back"] += 1
        try:
            row, error_kind = await self._complete(second, study)
        except Exception:  # the first reply is not lost with the second turn
            self._writer.flush_soon()
            if pending:
                await asyncio.wait(pending)
            raise
        return self._identified(second) | row, error_kind

    async def _step(self, study: StudyInFlight, ask: Ask, stage: int) -> Settled:
        """Ask one stage of a chain; when this returns, its completion is queued for the disk."""
        row, error_kind = await self._complete(ask, study)
        row |= self._identified(ask)
        pending_write = self._writer.add(row)
        pending_write.add_done_callback(noticed)
        self._unreported[stage_counter(stage)] += 1
        if self._stopped:  # the chain will not reach its end, so nothing else waits for this write
            self._writer.flush_soon()
            await asyncio.wait([pending_write])
        return row, error_kind

    def _identified(self, ask: Ask) -> CompletionRow:
        return {"request_key": ask.request_key, "node": self._node, "attempt": ask.attempt}

    async def _complete(self, ask: Ask, study: StudyInFlight) -> Settled:
        """Ask one request and count its tokens and frames; a chain counts through its requests."""
        started, error_kind = time.monotonic(), None
        try:
            row = _completion(await self._supervisor.answer(ask, study))
        except RequestError as error:
            row, error_kind = {"status": "engine_error", "error": str(error)}, error.kind
        if row.get("seconds") is None:
            row["seconds"] = time.monotonic() - started
        self._unreported.update(
            frames_referenced=len(ask.frame_keys),
            prompt_tokens=row.get("prompt_tokens", 0),
            cached_tokens=row.get("cached_tokens", 0),
            output_tokens=row.get("output_tokens", 0),
        )
        return row, error_kind


def seat() -> str:
    """Return the seat of this replica, `<Ray node>:<GPUs>`, with the GPUs that Ray assigned to it."""
    node = os.uname().nodename
    if stopping.is_connected():
        import ray

        node = ray.get_runtime_context().get_node_id()
    return f"{node}:{os.environ.get('CUDA_VISIBLE_DEVICES', '')}"


def _is_restarted() -> bool:
    """Return whether Ray restarted this actor."""
    if not stopping.is_connected():
        return False
    import ray

    return bool(ray.get_runtime_context().was_current_actor_reconstructed)


def _completion(reply: Reply) -> CompletionRow:
    """Return the columns that a reply decides; `seconds` is None if the engine does not know it."""
    numerics = reply.numerics or Numerics()
    return {name: getattr(reply, name) for name in _OF_REPLY} | {
        "option_logprobs": list(reply.option_logprobs.items()),
        "status": "refused" if reply.refused else "ok",
        **numerics._asdict(),
    }


def noticed(future: "asyncio.Future[Any]") -> None:
    """Retrieve the error of what nobody awaits: another one, or a later row of its chain, ends the run."""
    if not future.cancelled():
        future.exception()
