"""Rehearsal of many replicas on logical GPUs: the share of the run in which each works, and its memory.

    python -m bench.replicas [--replicas 8] [--seconds 0.25] [--store-gib 1] [--rgb-mib 512] [override ...]

The stream reads, renders and hands out the studies of a sweep as for any model. In the place of each engine a
stand-in takes `--seconds` for a request and works on `--width` at once; 0 is an instant reader. It keeps
frames in RGB as the engine of vLLM does, at most `--rgb-mib` of them.
"""

import argparse
import asyncio
import os
import resource
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np

from cardiolens.config.compose import read_spec
from cardiolens.inference.engine.ask import Ask, FrameWork, Pictures, Reply
from cardiolens.inference.engine.vllm_engine import rgb_frames
from cardiolens.inference.placement.placement import Deployment
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream import pipeline
from cardiolens.runtime.connect import be_quiet
from cardiolens.workflow.sweep import sweep


class StandIn:
    """An engine that waits, and writes when each request was in work."""

    def __init__(self, folder: Path, seconds: float, width: int, rgb_mib: int) -> None:
        self._file = folder / f"{os.getpid()}.txt"
        self._seconds = seconds
        self._frames = rgb_frames(rgb_mib << 20)
        self._room = asyncio.Semaphore(width)

    async def start(self) -> None:
        pass

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        async with self._room:
            began = time.monotonic()
            for key in ask.frame_keys:
                self._frames.of(key, pictures)
            await asyncio.sleep(self._seconds)
            kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            with self._file.open("a") as file:
                file.write(f"{began} {time.monotonic()} {kib}\n")
        return Reply("A", "stop")

    def frames(self) -> FrameWork:
        return FrameWork()

    def close(self) -> None:
        pass


def busy_shares(runs: list[np.ndarray], replicas: int) -> list[float]:
    """Share of the run in which each replica had a request in work, or one within the last 50 ms."""
    first, last = min(run[:, 0].min() for run in runs), max(run[:, 1].max() for run in runs)
    shares = []
    for run in runs:
        busy, until = 0.0, first
        for began, ended in run[np.argsort(run[:, 0]), :2]:
            since = began if began - until > 0.05 else until
            busy, until = busy + max(ended - since, 0.0), max(until, ended)
        shares.append(busy / (last - first))
    return sorted([*shares, *[0.0] * (replicas - len(runs))])


def main() -> None:
    """Print the requests per second, the busy share of each replica, in order, and their peak memory."""
    import ray

    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--replicas", type=int, default=8)
    arguments.add_argument("--seconds", type=float, default=0.25)
    arguments.add_argument("--width", type=int, default=4)
    arguments.add_argument("--store-gib", type=float, default=None)
    arguments.add_argument("--rgb-mib", type=int, default=512)
    given, overrides = arguments.parse_known_args()
    be_quiet()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        words = ["+experiment=slice_ablation", "model=[constant]", "tracker=none", *overrides]
        words += [f"store={folder}/store", f"outputs={folder}/outputs"]
        sweep(read_spec(words))  # prepares the cohort
        shutil.rmtree(folder / "store" / "completions")
        planned = plan(read_spec(words))
        ray.shutdown()
        memory = given.store_gib and int(given.store_gib * 2**30)
        ray.init(
            num_gpus=given.replicas, object_store_memory=memory, include_dashboard=False, log_to_driver=False
        )
        ran = folder / "ran"
        ran.mkdir()
        seconds, n_requests = _stream(planned, given, ran)
        runs = [np.loadtxt(path, ndmin=2) for path in ran.iterdir()]
        shares = busy_shares(runs, given.replicas)
    print(f"{n_requests} requests, {n_requests / seconds:.0f}/s; busy share of each replica:")
    print(" ".join(f"{share:.2f}" for share in shares), f"; mean {np.mean(shares):.2f}")
    print("peak memory of each, MiB:", *sorted(round(run[:, 2].max() / 1024) for run in runs))


def _stream(planned: Plan, given: argparse.Namespace, ran: Path) -> tuple[float, int]:
    def make_engine(*_: object, **__: object) -> StandIn:
        return StandIn(ran, given.seconds, given.width, given.rgb_mib)

    width = property(lambda _: given.width + given.width // 2)
    pipeline.make_engine, pipeline.ModelStream.width = make_engine, width
    deployment = Deployment("constant", 1, 1, ((),) * given.replicas, 0.9, "", 0.0)
    left = missing_of(planned, "constant")
    began = time.monotonic()
    pipeline.stream(planned, deployment, left, lambda counters: None)
    return time.monotonic() - began, left.left


if __name__ == "__main__":
    main()
