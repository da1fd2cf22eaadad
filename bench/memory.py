"""Peak memory of every process of a sweep, as the number of requests grows: 1x and 4x.

    .venv/bin/python bench/memory.py [override ...]

Uses the cohort of the demo, a quarter of it and all. The simulated reader answers at once, so that the stream
itself is what is measured. What the bootstrap holds grows with arms, not requests: see bench/bootstrap.py.
"""

import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path

MIB = 2**20
N_SEEDS = 4
LIMITS = (3, 12)  # studies


def main() -> None:
    seeds = ",".join(f"random@{seed}" for seed in range(N_SEEDS))
    for limit in LIMITS:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "cardiolens.sweep", "model=[uniform]", f"selector=[{seeds}]"]
            command += [
                "budget=[8,16,32]",
                "tracker=none",
                f"limit={limit}",
                f"store={folder}/store",
                f"outputs={folder}/outputs",
            ]
            running = subprocess.Popen([*command, *sys.argv[1:]], stdout=subprocess.PIPE, text=True)
            peaks = _watch(running)
            asked = next(
                line for line in running.communicate()[0].splitlines() if line.startswith("requests:")
            )
        print(f"{limit} studies: {asked}")
        for name, peak in sorted(peaks.items(), key=lambda item: -item[1])[:5]:
            print(f"  {name:<24} {peak / MIB:8.0f} MiB")


def _watch(running: "subprocess.Popen[str]") -> dict[str, int]:
    """Peak resident memory by kind of process, shared memory left out."""
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
