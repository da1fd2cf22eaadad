"""Few studies on many GPUs: the share of the ideal that replicas reach, and the prompt tokens, by simulation.

    .venv/bin/python -m bench.few_studies QUESTIONS [studies] [replicas] [override ...]

QUESTIONS are those of phantom_ci (`jobs/make_phantom.py dataset=phantom_ci out=...`). Every replica is
vLLM's own scheduler and caches (bench/on_scheduler); studies are handed out as Ray Data does: each
replica gets as many as the stream allows in flight, and the next when one has ended. A step lasts as on a
GPU of the 80 GiB class with a model of 8 billion parameters, by the constants below, which are assumptions.

Ideal is the time that all replicas compute, divided by the replicas. All sizes
in tokens are divided by GRAIN, which makes the simulation as many times faster and rounds texts up.
"""

import heapq
import sys
import tempfile
from collections import deque
from pathlib import Path

import pyarrow as pa

from bench.on_scheduler import engine as simulated
from bench.on_scheduler.engine import Settings, SimulatedEngine, Work, total
from bench.on_scheduler.prompts import Prompt, Tokens, planned_work, prompts_of
from cardiolens.inference.stream.replica_resources import blocks, blocks_in_flight, most_studies

STEP_SECONDS = 0.015  # of a step, whatever is in it: weights are read, kernels started
TOKENS_PER_SECOND = 10_000  # computed prompt tokens: 80,000 x billions, of 8 billions
ENCODING_SECONDS = (
    0.006  # of one run of the vision encoder: 784 patches through .6 billion parameters, at that rate
)
GRAIN = 14
FRAME_TOKENS = 196 // GRAIN
SETTINGS = Settings(
    step_tokens=16_384 // GRAIN, at_once=128, kv_tokens=400_000 // GRAIN, encoder_tokens=157_000 // GRAIN
)
OUTPUTS = 4
AT_ONCE = SETTINGS.at_once


def main() -> None:
    questions, words = Path(sys.argv[1]), sys.argv[2:]
    studies, replicas = (int(word) for word in (words + ["40", "32"][len(words) :])[:2])
    simulated.BLOCK = 196 // GRAIN
    with tempfile.TemporaryDirectory() as folder:
        overrides = ["selector=[clinical,random,uniform]", *words[2:]]
        _, left = planned_work(Path(folder), studies, questions, overrides)
        print(f"{studies} studies, {left.left:,} requests, {replicas} replicas", flush=True)
        seconds, busy, done = _makespan(left.work, replicas, Path(folder))
        print(
            f"{seconds:,.0f} s, {busy / replicas / seconds:.3f} of the ideal; "
            f"{done.computed * GRAIN:,} prompt tokens and {done.encoded:,} encoder runs"
        )


def _makespan(work: pa.Table, replicas: int, folder: Path) -> tuple[float, float, Work]:
    """Return the seconds until the last reply, the seconds in which replicas computed, and what they did."""
    waiting = deque(prompts_of(work, Tokens(FRAME_TOKENS, GRAIN)))
    actors = [_Actor(SimulatedEngine(SETTINGS, folder / "model")) for _ in range(replicas)]
    width = AT_ONCE * 3 // 2
    at_most = min(16, most_studies(work, replicas, width))
    most = blocks_in_flight(blocks(work, replicas, at_most), width, at_most)
    for _ in range(most):
        for actor in actors:
            if waiting:
                actor.take(waiting.popleft())
    clocks = [(0.0, number) for number in range(replicas)]
    ended = busy = 0.0
    while clocks:
        now, number = heapq.heappop(clocks)
        actor = actors[number]
        while waiting and actor.pieces < most:
            actor.take(waiting.popleft())
        if not actor.pieces:
            continue
        step = actor.step()
        lasts = STEP_SECONDS + step.computed * GRAIN / TOKENS_PER_SECOND + step.encoded * ENCODING_SECONDS
        now, busy = now + lasts, busy + lasts
        ended = max(ended, now)
        heapq.heappush(clocks, (now, number))
    return ended, busy, total(actor.engine.work for actor in actors)


class _Actor:
    """A replica with its pieces; `width` requests are in flight at its engine, in the order of pieces."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self.engine = engine
        self._queue: deque[tuple[str, Prompt]] = deque()
        self._open: dict[int, int] = {}  # requests without a reply, by piece
        self._in_flight = 0
        self._taken = 0

    @property
    def pieces(self) -> int:
        return len(self._open)

    def take(self, prompts: list[Prompt]) -> None:
        self._taken += 1
        self._open[self._taken] = len(prompts)
        self._queue.extend((f"{self._taken} {number}", prompt) for number, prompt in enumerate(prompts))

    def step(self) -> Work:
        while self._queue and self._in_flight < AT_ONCE * 3 // 2:
            self.engine.add(*self._queue.popleft(), OUTPUTS)
            self._in_flight += 1
        step = self.engine.step()
        for name in self.engine.finished:
            piece = int(name.split()[0])
            self._in_flight -= 1
            self._open[piece] -= 1
            if not self._open[piece]:
                del self._open[piece]
        return step


if __name__ == "__main__":
    main()
