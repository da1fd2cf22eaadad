"""Benchmark of the stream without a model: requests per second of an instant reader and of the tiny model.

    .venv/bin/python bench/instant.py [rounds] [override ...]

Studies are read, rendered and passed on as for any model; the reader gives the same letter to every request.
A rate is the number of requests executed divided by the seconds of generating without engine starts, both
from the manifest. The first sweep of a round prepares the store for both.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SWEEP = ["+experiment=slice_ablation", "tracker=none"]


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ratios = []
    for number in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            places = [f"store={folder}/store", f"outputs={folder}/outputs", *sys.argv[2:]]
            tiny = _rate([*SWEEP, "model=[tiny]", *places])
            instant = _rate([*SWEEP, "model=[constant]", *places])
        ratios.append(instant / tiny)
        print(
            f"round {number + 1}: instant {instant:.0f}/s, tiny {tiny:.0f}/s, ratio {ratios[-1]:.1f}",
            flush=True,
        )
    print(f"median ratio {statistics.median(ratios):.1f} of {rounds} rounds")


def _rate(words: list[str]) -> float:
    command = [sys.executable, "-m", "cardiolens.sweep", *words]
    done = subprocess.run(command, check=True, stderr=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    run = next(line for line in done.stdout.splitlines() if line.startswith("run: "))
    manifest = json.loads((Path(run.removeprefix("run: ")) / "manifest.json").read_text())
    return float(manifest["requests"]["executed"] / manifest["seconds"]["generate"])


if __name__ == "__main__":
    main()
