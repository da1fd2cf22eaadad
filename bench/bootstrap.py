"""Benchmark of scoring: time and memory for 24 arms, 670 patients, about 19,500 items per arm, B = 2,000.

Scores every arm, and every pair of arms that differ in one factor: 3 selectors x 4 budgets x 2 prompts.

python -m bench.bootstrap
"""

import argparse
import resource
import time
from itertools import product

import numpy as np
import pyarrow as pa

from cardiolens.score.statistics.factors import ArmFactors, families
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.storage.schemas import VERDICTS

TYPES = ("multi",) * 17 + ("ordinal",) * 7 + ("single",) * 8
LETTERS = np.array(list("ABCDE"))


def arms() -> list[ArmFactors]:
    """Arms of a slice ablation."""
    lists = (("clinical", "random", "uniform"), ("8", "16", "32", "64"), ("standard", "reasoning"))
    return [ArmFactors("-".join(entry), "model", *entry) for entry in product(*lists)]


def verdicts(patients: int, arm_ids: list[str], items: int) -> pa.Table:
    """Random verdicts on 32 subtasks of tier 1, spread over patients."""
    dice = np.random.default_rng(2026)
    asked = dice.permutation(patients * len(TYPES))[:items]
    several = np.array(TYPES)[asked // patients] == "multi"
    gold = _letters(several, dice)
    blocks = [_arm(arm, asked % patients, asked // patients, gold, dice) for arm in arm_ids]
    return pa.concat_tables(blocks)


def _arm(
    arm: str, patient: np.ndarray, subtask: np.ndarray, gold: pa.Array, dice: np.random.Generator
) -> pa.Table:
    rows = len(patient)
    types = np.array(TYPES)[subtask]
    multi = types == "multi"
    keys = [f"p{number:04d}" for number in patient]
    columns = {
        "arm_id": pa.repeat(arm, rows),
        "qa_id": pa.array([f"{key}:S{number:02d}" for key, number in zip(keys, subtask, strict=True)]),
        "channel": pa.repeat("answer", rows),
        "study_id": pa.array(keys),
        "patient_id": pa.array(keys),
        "tier": pa.array(np.ones(rows, np.int32)),
        "sequence": pa.array([("cine", "lge", "perfusion", "t2")[number % 4] for number in subtask]),
        "subtask": pa.array([f"S{number:02d}" for number in subtask]),
        "answer_type": pa.array(types.tolist()),
        "request_key": pa.array([f"{arm}/{number}" for number in range(rows)]),
        "status": pa.repeat("judged", rows),
        "parse_status": pa.repeat("ok", rows),
        "rule": pa.repeat("letters", rows),
        "parsed": _letters(multi, dice),
        "gold": gold,
        "correct": pa.array(dice.random(rows) < 0.5),
        "counts": pa.array([[("options", 5.0)]] * rows, VERDICTS.field("counts").type),
    }
    return pa.table([columns[name] for name in VERDICTS.names], schema=VERDICTS)


def _letters(multi: np.ndarray, dice: np.random.Generator) -> pa.Array:
    """Random answer: one to three letters where several are allowed, else one letter."""
    numbers = np.where(multi, dice.integers(1, 4, size=len(multi)), 1)
    chosen = [sorted(dice.choice(5, size=number, replace=False)) for number in numbers]
    return pa.array([LETTERS[entry].tolist() for entry in chosen])


def main() -> None:
    """Score once, and print the seconds and the peak memory."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, default in (("patients", 670), ("items", 19_500), ("resamples", 2000)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    given = arguments.parse_args()
    pairs = families(arms())
    table = verdicts(given.patients, [arm.arm_id for arm in arms()], given.items)
    start, busy = time.perf_counter(), time.process_time()
    results = score(table, arms(), Settings(5, given.resamples, 2026))
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    peak_gib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    n_pairs = sum(map(len, pairs.values()))
    print(
        f"{table.num_rows} verdicts, {n_pairs} pairs, {results.scores.num_rows} scores, "
        f"{results.comparisons.num_rows} comparisons, peak {peak_gib:.2f} GiB"
    )
    print(f"{seconds:.1f} s, of which this process ran {busy:.1f} s")


if __name__ == "__main__":
    main()
