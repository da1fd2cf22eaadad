"""Benchmark of a cold sweep of 24 arms against the same arms one by one, each in a new bare vLLM process.

    .venv/bin/python bench/arms.py [arms to run alone] [override ...]

Both start from prepared studies and without completions. The time of the sweep includes Ray, plan, engine,
requests, judging and statistics. Only a few arms, drawn at random, are run alone; their mean stands for the
others. Arms run alone do not judge.
"""

import random
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import product
from pathlib import Path

SWEEP = ["+experiment=slice_ablation", "model=[tiny]", "tracker=none"]
SELECTORS, BUDGETS, PROMPTS = ("random", "clinical", "kcenter"), (8, 16, 32, 64), ("standard", "reasoning")
SEED = 2026
STREAM = Path(__file__).with_name("stream.py")


def main() -> None:
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 24
    arms = [
        [f"selector=[{selector}]", f"budget=[{budget}]", f"prompt=[{prompt}]"]
        for selector, budget, prompt in product(SELECTORS, BUDGETS, PROMPTS)
    ]
    with tempfile.TemporaryDirectory() as folder:
        words = [*SWEEP, f"store={folder}/store", f"outputs={folder}/outputs", *sys.argv[2:]]
        _run([sys.executable, "-m", "cardiolens.sweep", *words, "mode=plan"])  # prepares studies and features
        shutil.rmtree(Path(folder) / "outputs")
        together = _run([sys.executable, "-m", "cardiolens.sweep", *words])
        shutil.rmtree(Path(folder) / "store" / "completions")
        alone = []
        for arm in random.Random(SEED).sample(arms, wanted):
            alone.append(_run([sys.executable, str(STREAM), "--bare", f"{folder}/told.json", *words, *arm]))
            print(f"{' '.join(arm)}: {alone[-1]:.0f} s", flush=True)
    one_by_one = sum(alone) / len(alone) * len(arms)
    print(
        f"{len(arms)} arms: together {together:.0f} s, one after another {one_by_one:.0f} s "
        f"({len(alone)} were run), ratio {one_by_one / together:.1f}"
    )


def _run(command: list[str]) -> float:
    began = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.monotonic() - began


if __name__ == "__main__":
    main()
