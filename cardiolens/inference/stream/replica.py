"""A replica of a model in the stream: answers the requests of studies and writes their completions."""

import asyncio
import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.engine.ask import (
    Ask,
    Engine,
    FrameWork,
    NotAskedError,
    Reply,
    RequestError,
)
from cardiolens.inference.engine.supervisor import RESTARTS, Supervisor
from cardiolens.inference.plan.missing import final_replies, killer_keys
from cardiolens.inference.stream.chain_walk import Completion, Walk
from cardiolens.inference.stream.loader import PROGRESS, Row, ask_of, stage_counter
from cardiolens.inference.stream.writer import CompletionWriter
from cardiolens.protocol.dialogue.asking_back import DisplayedChoice, SecondTurn, option_texts
from cardiolens.protocol.dialogue.chain import Chain, FrameRef
from cardiolens.protocol.dialogue.chain_tables import known_steps, read_part_chains
from cardiolens.protocol.tasks.catalogue import OPEN
from cardiolens.runtime import stopping
from cardiolens.study.shards import shaped

_LISTEN_SECONDS = 0.5
_OF_REPLY = (
    *("text", "reasoning", "finish_reason", "seconds"),
    *("prompt_tokens", "cached_tokens", "output_tokens"),
)
_PARTS = 4  # of which the chains are kept

LoadVolume = Callable[[str, str], Mapping[int, Row]]
"""Read and render all frames of a volume, given study_id and volume_id; rows of PICTURE by idx."""


class StudyInFlight:
    """A study in flight at the replica, with its frames by key.

    A volume is read when a reader asks for one of its frames: those that a reader will choose are unknown
    when the study is loaded, and all would be too many.
    """

    def __init__(self, study: Row, load: LoadVolume | None) -> None:
        self.open = len(study["asks"])  # asks without a reply; at 0 the study waits for the disk
        self._study_id = study["study_id"]
        self._load = load
        self._rows = {row["key"]: row for row in study["pictures"]}
        self._volumes: dict[str, asyncio.Future[Mapping[int, str]]] = {}  # by volume_id: key by idx

    def __call__(self, key: str) -> np.ndarray:
        row = self._rows[key]
        return shaped(row["pixels"], row["height"], row["width"], row["channels"])

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
        self._counters: Counter[str] = Counter()  # not reported yet
        killers = killer_keys(completions)
        self._supervisor = Supervisor(self._engine, RESTARTS, killers, self._counters)
        # Of asks: a chain keeps its slot, as the engine's caches hold its frames only for a while.
        self._slots = asyncio.Semaphore(width)
        self._writer = CompletionWriter(completions, stream.flush_rows, stream.flush_seconds)
        self._node = os.uname().nodename
        self._names_question, self._asking_back = names_question, asking_back
        self._texts = option_texts(questions) if questions is not None and asking_back else {}
        # After a restart, Ray sends this actor its unfinished studies once more.
        context = _ray_context()
        is_restarted = context is not None and context.was_current_actor_reconstructed
        self._answered = final_replies(completions, None if is_restarted else read_back)
        self._known = known_steps(parts, completions)  # after a restart, the store has more of them
        self._chains = lru_cache(maxsize=_PARTS)(read_part_chains)
        self._load_volume = load_volume
        self._studies: set[StudyInFlight] = set()
        self._settling: set[asyncio.Task[Row | None]] = set()  # asks with no completion on disk yet
        self._frames_reported = FrameWork()
        self._listening: asyncio.Task[None] | None = None
        self._stopped = False

    async def __call__(self, block: pa.Table) -> AsyncIterator[pa.Table]:
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())
        finished = await asyncio.gather(*map(self._study, block.to_pylist()))
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

    async def _study(self, study: Row) -> Row:
        chained = any(row["stage"] for row in study["asks"])
        chains = await asyncio.to_thread(self._chains, Path(study["part"])) if chained else {}
        statuses = [row["status"] for row in await self._settle_all(study, chains)]
        counters = Counter(self._counters)
        self._counters.clear()
        counters.update("error" if status == "engine_error" else status for status in statuses)
        frames, before = self._engine.frames(), self._frames_reported
        self._frames_reported = frames
        counters.update(
            frames_processed=frames.processed - before.processed,
            frames_encoded=frames.encoded - before.encoded,  # runs of the vision encoder
        )
        return {"study_id": study["study_id"], "seat": seat(), "counters": list(counters.items())}

    async def _settle_all(self, study: Row, chains: Mapping[str, Chain]) -> list[Row]:
        """Settle all asks of a study; leave out those that are stored, or not sent because the run stopped.

        An error is raised only after every completion in flight, of all studies, is on disk.
        """
        in_flight = StudyInFlight(study, self._load_volume)
        walk = Walk(self._known, partial(self._step, in_flight), in_flight.keys_of)
        tasks = [
            asyncio.create_task(self._settle(row, chains.get(row["request_key"]), in_flight, walk))
            for row in study["asks"]
        ]
        self._studies.add(in_flight)
        self._settling.update(tasks)
        for task in tasks:
            task.add_done_callback(self._settling.discard)
        try:
            settled = await asyncio.gather(*tasks)
        except Exception:
            while self._settling:
                await asyncio.wait(self._settling)
            raise
        finally:
            if self._stopped:  # what was answered on the way to an ask that did not end
                await self._writer.drained()
            self._studies.discard(in_flight)
        return [row for row in settled if row is not None]

    async def _settle(self, row: Row, chain: Chain | None, study: StudyInFlight, walk: Walk) -> Row | None:
        """Wait until the answer is on disk; None if nothing was asked, or not all because the run stopped."""
        try:
            async with self._slots:
                try:
                    completion = await self._answer(row, chain, study, walk)
                finally:
                    study.open -= 1
            if completion is not None:
                written = self._store(completion)
                if not study.open and 2 * sum(not each.open for each in self._studies) > len(self._studies):
                    self._writer.flush_soon()  # most wait for the disk alone, and block those with open asks
                await written
        except NotAskedError:
            return None
        except Exception:  # send, and pay for, nothing more
            self._stop()
            raise
        return completion

    async def _answer(self, row: Row, chain: Chain | None, study: StudyInFlight, walk: Walk) -> Row | None:
        """Ask a request or a chain, and ask back after a reply that cannot be read; None if nothing is left.

        The first completion is queued for the disk before the second turn is asked.
        """
        ask = ask_of(row, names_question=self._names_question)
        asks_back = row["arm_id"] in self._asking_back and row["answer_type"] not in OPEN
        stored = self._answered.get(ask.request_key)  # from before this run or this replica began
        if stored is not None and not asks_back:
            return None
        completion: Row | None = None
        if chain is not None:  # also if stored: the second turn shows what its last stage showed
            completion = await walk.go(ask, chain) | self._identity(ask)
        elif stored is None:
            completion = await self._complete(ask, study)
        turn = self._second_turn(row, stored or completion) if asks_back else None
        if turn is None or turn.request_key in self._answered:
            return None if stored else completion
        if completion is not None and not stored:
            self._store(completion)
        self._counters["asked_back"] += 1
        last = walk.last.get(ask.request_key, ask)
        second = replace(
            last,
            request_key=turn.request_key,
            text=last.text + turn.ending,
            constraint=turn.constraint,
            attempt=ask.attempt if stored else 1,
        )
        return await self._complete(second, study)

    def _second_turn(self, row: Row, first: Completion | None) -> SecondTurn | None:
        """Return what is asked after a first reply; None if that is read or did not come."""
        if first is None or first["status"] != "ok":
            return None
        form = row["answer_type"], row["option_keys"], row["exclusive"]
        choice = DisplayedChoice.of(*form, self._texts[row["qa_id"]])
        return choice.second_turn(row["request_key"], first["text"] or "", first["finish_reason"] or "")

    async def _step(self, study: StudyInFlight, ask: Ask, stage: int) -> Row:
        """Ask one stage of a chain; when this returns, its completion is queued for the disk."""
        row = await self._complete(ask, study)
        self._store(row)
        self._counters[stage_counter(stage)] += 1
        return row

    def _store(self, row: Row) -> asyncio.Future[None]:
        """Queue a completion for the disk; it is written soon if the run stops, as few rows follow it."""
        written = self._writer.add(row)
        written.add_done_callback(noticed)
        if self._stopped:
            self._writer.flush_soon()
        return written

    def _identity(self, ask: Ask) -> Row:
        return {"request_key": ask.request_key, "node": self._node, "attempt": ask.attempt}

    async def _complete(self, ask: Ask, study: StudyInFlight) -> Row:
        """Ask one request and count its tokens and frames; a chain counts through its requests."""
        started = time.monotonic()
        try:
            row = _completion(await self._supervisor.answer(ask, study))
        except RequestError as error:
            row = {"status": "engine_error", "error": str(error)}
            self._counters[error.kind] += 1
        if row.get("seconds") is None:
            row["seconds"] = time.monotonic() - started
        self._counters.update(
            frames_referenced=len(ask.frame_keys),
            prompt_tokens=row.get("prompt_tokens", 0),
            cached_tokens=row.get("cached_tokens", 0),
            output_tokens=row.get("output_tokens", 0),
        )
        return row | self._identity(ask)


def _ray_context() -> Any:
    """Return Ray's context of this actor; None outside Ray."""
    if not stopping.is_connected():
        return None
    import ray

    return ray.get_runtime_context()


def seat() -> str:
    """Return the seat of this replica, `<Ray node>:<GPUs>`, with the GPUs that Ray assigned to it."""
    context = _ray_context()
    node = context.get_node_id() if context else os.uname().nodename
    return f"{node}:{os.environ.get('CUDA_VISIBLE_DEVICES', '')}"


def _completion(reply: Reply) -> Row:
    """Return the columns that a reply decides; `seconds` is None if the engine does not know it."""
    return {name: getattr(reply, name) for name in _OF_REPLY} | {
        "option_logprobs": list(reply.option_logprobs.items()),
        "status": "refused" if reply.refused else "ok",
        **reply.numerics._asdict(),
    }


def noticed(future: "asyncio.Future[Any]") -> None:
    """Retrieve the error of what nobody awaits: another one, or a later row of its chain, ends the run."""
    if not future.cancelled():
        future.exception()
