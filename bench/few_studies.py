"""Few studies on many GPUs: the share of the ideal that replicas reach, and the prompt tokens, by simulation.

    .venv/bin/python -m bench.few_studies QUESTIONS [studies] [replicas] [override ...]

QUESTIONS are those of phantom_ci (`jobs/make_phantom.py dataset=phantom_ci out=...`). Every replica is vLLM's own
scheduler and caches (bench/on_scheduler); pieces of work are handed out as Ray Data does: each replica gets as
many as the stream allows in flight, and the next when one has ended. A step lasts as on a GPU of the 80 GiB
class with a model of 8 billion parameters, by the constants below, which are assumptions.

Ideal is the time of one replica that answers everything, divided by the replicas.
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
from cardiolens.inference.stream.pipeline import _studies_in_flight
from cardiolens.inference.stream.study_pieces import divided, most_waiting

STEP_SECONDS = 0.015  # of a step, whatever is in it: weights are read, kernels started
TOKENS_PER_SECOND = 10_000  # computed prompt tokens: 80,000 x billions, of 8 billions
ENCODING_SECONDS = 0.006  # of one run of the vision encoder: 784 patches through .6 billion parameters, at that rate
FRAME_TOKENS = 196
OUTPUTS = 4
AT_ONCE = 128


def main() -> None:
    questions, words = Path(sys.argv[1]), sys.argv[2:]
    studies, replicas = (int(word) for word in (words + ["40", "32"][len(words) :])[:2])
    simulated.BLOCK = 64  # four of vLLM's blocks: as many tokens, less to compute here
    with tempfile.TemporaryDirectory() as folder:
        overrides = ["selector=[clinical,random,uniform]", *words[2:]]
        _, left = planned_work(Path(folder), studies, questions, overrides)
        print(f"{studies} studies, {left.left:,} requests, {replicas} replicas", flush=True)
        alone, least = _makespan(left.work, 1, Path(folder))
        print(f"one replica: {alone:,.0f} s, {least.computed:,} prompt tokens, {least.encoded:,} encoder runs")
        for name, work in (("studies whole", left.work), ("divided", divided(left.work, replicas))):
            seconds, done = _makespan(work, replicas, Path(folder))
            print(
                f"{name}: {work.num_rows} pieces, {seconds:,.0f} s, {alone / replicas / seconds:.3f} of the ideal; "
                f"prompt tokens {done.computed / least.computed:.3f} and encoder runs "
                f"{done.encoded / least.encoded:.3f} of one replica's",
                flush=True,
            )


def _makespan(work: pa.Table, replicas: int, folder: Path) -> tuple[float, Work]:
    """Return the seconds until the last reply, and what all replicas did."""
    waiting = deque(prompts_of(work, Tokens(FRAME_TOKENS)))
    engines = [SimulatedEngine(Settings(at_once=AT_ONCE), folder / "model") for _ in range(replicas)]
    most = _studies_in_flight(work, AT_ONCE * 3 // 2, min(16, most_waiting(work, replicas)))
    actors = [_Actor(engine) for engine in engines]
    for _ in range(most):
        for actor in actors:
            if waiting:
                actor.take(waiting.popleft())
    clocks = [(0.0, number) for number in range(replicas)]
    ended = 0.0
    while clocks:
        now, number = heapq.heappop(clocks)
        actor = actors[number]
        while waiting and actor.pieces < most:
            actor.take(waiting.popleft())
        if not actor.pieces:
            continue
        step = actor.step()
        now += STEP_SECONDS + step.computed / TOKENS_PER_SECOND + step.encoded * ENCODING_SECONDS
        ended = max(ended, now)
        heapq.heappush(clocks, (now, number))
    return ended, total(engine.work for engine in engines)


class _Actor:
    """A replica with its pieces; `width` requests are in flight at its engine, in the order of pieces."""

    def __init__(self, engine: SimulatedEngine) -> None:
        self._engine = engine
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
            self._engine.add(*self._queue.popleft(), OUTPUTS)
            self._in_flight += 1
        step = self._engine.step()
        for name in self._engine.finished:
            piece = int(name.split()[0])
            self._in_flight -= 1
            self._open[piece] -= 1
            if not self._open[piece]:
                del self._open[piece]
        return step


if __name__ == "__main__":
    main()
