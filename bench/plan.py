"""Benchmark of planning: requests per second on one core with exact token counts, and growth with arms.

    .venv/bin/python bench/plan.py [override ...]

Uses the store of phantom_ci (`python -m cardiolens.prepare dataset=phantom_ci` makes it). The time includes
writing the requests, but not the start of the model's tokenizer.
"""

import sys
import tempfile
import time

from cardiolens.config.compose import read_spec
from cardiolens.inference.plan.plan import plan


def main() -> None:
    """Time plans of three sizes; print the rate between the last two, in which constant costs cancel out."""
    timed = [_planned(n_budgets, sys.argv[1:]) for n_budgets in (1, 4, 16)]
    for arms, asked, seconds in timed:
        print(f"{arms} arms: {asked} requests in {seconds:.1f} s")
    (_, fewer, short), (_, more, long) = timed[-2:]
    print(f"each further request: {(more - fewer) / (long - short):.0f}/s")


def _planned(n_budgets: int, overrides: list[str]) -> tuple[int, int, float]:
    budgets = ",".join(str(4 * number) for number in range(1, n_budgets + 1))
    with tempfile.TemporaryDirectory() as folder:
        words = ["+experiment=slice_ablation", "model=[tiny]", f"budget=[{budgets}]", f"outputs={folder}"]
        spec = read_spec([*words, *overrides])
        plan(spec.model_copy(update={"limit": 1}))  # imports and tokenizer
        started = time.process_time()
        planned = plan(spec)
        return len(planned.arms), planned.asked, time.process_time() - started


if __name__ == "__main__":
    main()
