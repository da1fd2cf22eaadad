"""Soak test: 100,000 requests to instant readers while processes are killed at random; nothing may be lost.

    .venv/bin/python bench/soak.py [override ...]

Every 20 seconds on average (exponentially distributed) one process of the sweep is killed with SIGKILL: in
one of five cases the driver, else any of its descendants, including Ray's own. The command is started again
whenever it ends with an error, until it succeeds. Then every request must have one final completion, and the
number of duplicate rows may not exceed the rows that were not yet written at the kills.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SWEEP = [
    "+experiment=slice_ablation",
    "name=soak",
    "model=[constant,uniform,prevalence,noisy]",
    "selector=[clinical,random,kcenter,kmedoids,uniform]",
    "budget=[8,12,16,24,32,64]",
    "dataset.phantom.n_sampled=24",
    "tracker=none",
    "statistics.resamples=50",
]
MEAN_SECONDS = 20.0
DRIVER_SHARE = 0.2
SEED = 2026
_EXCERPT = 4000  # characters of what a sweep printed that a message repeats


@dataclass(slots=True)
class Soak:
    """Kills and restarts of a sweep, and the counts of its requests and completions."""

    killed: Counter[str] = field(default_factory=Counter)  # by name
    runs: int = 0
    seconds: float = 0.0
    unique: int = 0  # requests planned
    rows: int = 0  # completions on disk
    lost: int = 0  # requests without a final completion

    @property
    def twice(self) -> int:
        return self.rows - self.unique + self.lost

    def __str__(self) -> str:
        kills = ", ".join(f"{name} {n}" for name, n in self.killed.most_common())
        return (
            f"{self.unique:,} requests in {self.seconds:.0f} s and {self.runs} runs; lost {self.lost}, asked "
            f"twice {self.twice:,}\n{self.killed.total()} kills: {kills}"
        )


def soak(words: Sequence[str], root: Path, mean_seconds: float = MEAN_SECONDS, seed: int = SEED) -> Soak:
    """Run a sweep to its end while killing processes; AssertionError if it fails without a kill."""
    dice, done, began = random.Random(seed), Soak(), time.monotonic()
    command = [sys.executable, "-m", "cardiolens.sweep", *words]
    command += [f"store={root}/store", f"outputs={root}/outputs"]
    while True:
        before = done.killed.total()
        done.runs += 1
        code, printed = _disturbed(command, root / "printed", mean_seconds, dice, done.killed)
        if code == 0:
            break
        assert done.killed.total() > before, f"ended with {code}, and nothing was killed:\n{printed}"
    done.seconds = time.monotonic() - began
    done.unique, done.rows, done.lost = _counted(root)
    return done


def _disturbed(
    command: Sequence[str], out: Path, mean_seconds: float, dice: random.Random, killed: Counter[str]
) -> tuple[int, str]:
    """Run one sweep while killing processes at random; return its exit code and the end of its output."""
    with out.open("w+") as printed:
        running = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
        while True:
            try:
                code = running.wait(timeout=dice.expovariate(1 / mean_seconds))
                return code, out.read_text()[-_EXCERPT:]
            except subprocess.TimeoutExpired:
                _kill_one(running.pid, dice, killed)


def _kill_one(driver: int, dice: random.Random, killed: Counter[str]) -> None:
    others = descendants(driver)
    if dice.random() < DRIVER_SHARE:
        killed["driver"] += 1
        _kill(driver)
    elif others:
        victim = dice.choice(others)
        killed[_name(victim)] += 1
        _kill(victim)


def descendants(pid: int) -> list[int]:
    """Processes below one, as the kernel knows them."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:  # it ended meanwhile
        return []
    return [found for child in children for found in (child, *descendants(child))]


def _name(pid: int) -> str:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return "ended"
    script = next((word for word in words[1:] if word.endswith(".py")), words[0])
    return Path(script.split("(")[0]).name or "ended"


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def _counted(root: Path) -> tuple[int, int, int]:
    """Numbers of requests planned, completions written, and requests without a final completion."""
    from cardiolens.storage import schemas, tables

    (run,) = (root / "outputs").iterdir()
    planned: set[tuple[str, str]] = set()
    for model in (run / "requests").iterdir():
        rows = tables.read(model, schemas.REQUESTS, ("request_key", "status"))
        planned |= {
            (model.name, row["request_key"]) for row in rows.to_pylist() if row["status"] == "planned"
        }
    ok: list[tuple[str, str]] = []
    for folder in (root / "store" / "completions").iterdir():
        rows = tables.read(folder, schemas.COMPLETIONS, ("request_key", "status"))
        model_name = folder.name.rpartition("-")[0]
        ok += [(model_name, row["request_key"]) for row in rows.to_pylist() if row["status"] == "ok"]
    return len(planned), len(ok), len(planned - set(ok))


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        data = [f"dataset.studies={folder}/data/studies", f"dataset.questions={folder}/data/questions.jsonl"]
        done = soak([*SWEEP, *data, *sys.argv[1:]], Path(folder))
    print(done)
    assert not done.lost
    assert done.twice <= done.killed.total() * at_hand()


def at_hand() -> int:
    """Largest number of rows that one replica holds before they are on disk: in flight and not flushed."""
    from cardiolens.config.model import ModelSpec
    from cardiolens.config.sweep import StreamSpec

    at_once = ModelSpec(name="m", source="x").at_once
    return int(StreamSpec().flush_rows + at_once + at_once // 2)


if __name__ == "__main__":
    main()
