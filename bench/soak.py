"""100,000 requests to readers that answer at once, while processes are killed at random; nothing may be lost.

    .venv/bin/python bench/soak.py [seconds between kills] [override ...]

Every so many seconds (drawn from an exponential distribution) one process of the sweep is killed with
SIGKILL: in one of five cases the driver, else any of its descendants, Ray's own among them. The command is
started again whenever it ended with an error, until it ends well. Then every request must have one final
completion.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

SWEEP = [
    "+experiment=slice_ablation",
    "name=soak",
    "model=[oracle,noisy,collapse,conservative,prevalence]",
    "selector=[clinical,random,uniform]",
    "tracker=none",
    "statistics.resamples=50",
]
DRIVER_SHARE = 0.2
SEED = 2026


def main() -> None:
    mean = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    dice, killed, runs = random.Random(SEED), Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        words = [*SWEEP, f"store={folder}/store", f"outputs={folder}/outputs", *sys.argv[2:]]
        began = time.monotonic()
        code: int | None = 1
        while code != 0:
            runs += 1
            code = _disturbed(words, mean, dice, killed)
        seconds = time.monotonic() - began
        unique, rows, lost = _counted(Path(folder))
    print(f"{unique:,} requests in {seconds:.0f} s and {runs} runs; lost {lost}, asked twice {rows - unique}")
    print(f"{killed.total()} kills: " + ", ".join(f"{name} {n}" for name, n in killed.most_common()))
    assert not lost


def _disturbed(words: list[str], mean: float, dice: random.Random, killed: Counter[str]) -> int:
    """The exit code of one sweep, killed at by the dice."""
    command = [sys.executable, "-m", "cardiolens.sweep", *words]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while True:
        try:
            return running.wait(timeout=dice.expovariate(1 / mean))
        except subprocess.TimeoutExpired:
            others = _descendants(running.pid)
            driver = not others or dice.random() < DRIVER_SHARE
            victim = running.pid if driver else dice.choice(others)
            killed["driver" if driver else _name(victim)] += 1
            _kill(victim)


def _descendants(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:  # it ended meanwhile
        return []
    return [found for child in children for found in (child, *_descendants(child))]


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


def _counted(folder: Path) -> tuple[int, int, int]:
    """Unique requests planned, completions written, and requests without a final one."""
    from cardiolens import tables

    (run,) = (folder / "outputs").iterdir()
    planned: set[str] = set()
    for model in (run / "requests").iterdir():
        rows = tables.read(model, tables.REQUESTS, ("request_key", "status"))
        planned |= {row["request_key"] for row in rows.to_pylist() if row["status"] == "planned"}
    said: list[str] = []
    for model in (folder / "store" / "completions").iterdir():
        rows = tables.read(model, tables.COMPLETIONS, ("request_key", "status"))
        said += [row["request_key"] for row in rows.to_pylist() if row["status"] == "ok"]
    return len(planned), len(said), len(planned - set(said))


if __name__ == "__main__":
    main()
