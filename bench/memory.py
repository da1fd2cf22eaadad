"""Benchmark of memory: peak of every process of a sweep as the number of requests grows: 1x, 4x and 16x.

    .venv/bin/python bench/memory.py [override ...]

Makes a cohort of small phantoms and asks about a sixteenth, a quarter and all of it. The simulated reader
answers at once, so that only the stream is measured; `model=[tiny]` also measures vLLM's processes. The
memory of the bootstrap grows with arms and not with requests: see bench/bootstrap.py.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

MIB = 2**20
N_SEEDS = 4
LIMITS = (3, 12, 48)  # studies


def main() -> None:
    seeds = ",".join(f"random@{seed}" for seed in range(N_SEEDS))
    with tempfile.TemporaryDirectory() as folder:
        sweep = [sys.executable, "-m", "cardiolens.sweep", "model=[uniform]", f"selector=[{seeds}]"]
        sweep += [
            "budget=[8,16,32]",
            "tracker=none",
            f"dataset.phantom.n_sampled={LIMITS[-1]}",
            f"dataset.studies={folder}/data/studies",
            f"dataset.questions={folder}/data/questions.jsonl",
            f"store={folder}/store",
            f"outputs={folder}/outputs",
            *sys.argv[1:],
        ]
        subprocess.run([*sweep, "mode=plan"], check=True, stdout=subprocess.DEVNULL)  # makes and prepares it
        for limit in LIMITS:
            running = subprocess.Popen([*sweep, f"limit={limit}"], stdout=subprocess.PIPE, text=True)
            peaks = _watch(running)
            lines = running.communicate()[0].splitlines()
            asked = next(line for line in lines if line.startswith("requests:"))
            print(f"{limit} studies: {asked}", flush=True)
            for name, peak in sorted(peaks.items(), key=lambda item: -item[1])[:5]:
                print(f"  {name:<24} {peak / MIB:8.0f} MiB", flush=True)
            shutil.rmtree(Path(folder) / "store" / "completions")


def _watch(running: "subprocess.Popen[str]") -> dict[str, int]:
    """Peak resident memory by kind of process, without shared memory."""
    peaks: dict[str, int] = defaultdict(int)
    while running.poll() is None:
        for pid in [running.pid, *_descendants(running.pid)]:
            name, resident = _memory(pid)
            peaks["driver" if pid == running.pid else name] = max(
                peaks["driver" if pid == running.pid else name], resident
            )
        time.sleep(0.5)
    return peaks


def _descendants(pid: int) -> list[int]:
    try:
        tasks = list(Path(f"/proc/{pid}/task").glob("*/children"))
        children = [int(child) for task in tasks for child in task.read_text().split()]
    except OSError:
        return []
    return [found for child in children for found in (child, *_descendants(child))]


def _memory(pid: int) -> tuple[str, int]:
    try:
        name = Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ").split("(")[0][:24]
        resident, shared = Path(f"/proc/{pid}/statm").read_text().split()[1:3]
    except OSError:
        return "gone", 0
    return name.strip() or "gone", (int(resident) - int(shared)) * 4096


if __name__ == "__main__":
    main()
