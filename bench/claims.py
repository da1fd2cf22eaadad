"""How often a run claims what is not so, and how often it finds what is.

    python -m bench.claims                                # 200 null experiments, 100 for power
    python -m bench.claims --null 20 --power 20 --resamples 200 --swaps 500

Null: 24 exchangeable arms (3 selections x 4 budgets x 2 prompts), 60 patients. Power: two prompts, 200
patients, the second better by 10 points on tier 1. Items of a patient are correlated, and so are the answers
of arms to an item. Product code makes scores, tests and sentences.
"""

import argparse
import time
from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
from scipy import stats

from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows

# answer type, options, tier, share of patients asked
SUBTASKS = {
    **{"C02": ("single", 3, 1, 1.0), "C10": ("ordinal", 4, 1, 1.0), "C11": ("multi", 5, 1, 0.5)},
    **{"L01": ("single", 2, 1, 1.0), "L02": ("multi", 5, 1, 0.5), "P01": ("single", 2, 1, 1.0)},
    **{"T01": ("single", 2, 1, 1.0), "T02": ("multi", 4, 1, 0.5)},
    **{"D01": ("single", 3, 3, 1.0), "D02": ("single", 5, 3, 0.5)},
}
SEQUENCES = {"C": "cine", "L": "lge", "P": "perfusion", "T": "t2", "D": "all"}
PATIENT_SD, ITEM_SD = 0.7, 0.7  # of what arms share; an arm's own answer has SD 1
ABILITY = 0.3
FAMILY = 264  # of the 24 arms: 72 pairs, two tiers of them three with reports, and metrics of prompting


def arms_of(
    selectors: Sequence[str],
    budgets: Sequence[str],
    prompts: Sequence[str],
    models: Sequence[str] = ("model",),
) -> list[ArmFactors]:
    """Every combination."""
    return [ArmFactors("-".join(one), *one) for one in product(models, selectors, budgets, prompts)]


def verdicts(
    arms: Sequence[ArmFactors], patients: int, dice: np.random.Generator, better: float = 0.0
) -> list[dict[str, object]]:
    """Answers of every arm to every patient; arms with another prompt are `better` on the latent scale."""
    rows: list[dict[str, object]] = []
    effect = dice.normal(0, PATIENT_SD, patients)
    for subtask, (kind, size, tier, asked) in SUBTASKS.items():
        letters = np.array(list("ABCDE"[:size]))
        for patient in np.flatnonzero(dice.random(patients) < asked):
            gold = dice.random(size) < 0.4 if kind == "multi" else np.arange(size) == dice.integers(size)
            gold = gold if gold.any() else np.arange(size) == 0
            latent = ABILITY + effect[patient] + dice.normal(0, ITEM_SD)
            for arm in arms:
                level = latent + (better if arm.prompt != "standard" else 0.0)
                right = level + dice.normal(size=size if kind == "multi" else 1) > 0
                said = gold == right if kind == "multi" else gold
                if kind != "multi" and not right[0]:
                    said = np.arange(size) == (int(np.argmax(gold)) + dice.integers(1, size)) % size
                named = [letters[flags].tolist() for flags in (gold, said)]
                row = {"arm_id": arm.arm_id, "subtask": subtask, "tier": tier, "answer_type": kind}
                rows.append(_row(row, int(patient), named, size))
    return rows


def _row(of_arm: dict[str, object], patient: int, named: list[list[str]], size: int) -> dict[str, object]:
    """A verdict; `named` are the letters that are right and those that were said."""
    subtask = str(of_arm["subtask"])
    return of_arm | {
        "qa_id": f"p{patient:03d}:{subtask}",
        "channel": "answer",
        "patient_id": f"p{patient:03d}",
        "sequence": SEQUENCES[subtask[0]],
        "request_key": f"{of_arm['arm_id']}/{patient}/{subtask}",
        "status": "judged",
        "parse_status": "ok" if named[1] else "parse_error",
        "parsed": named[1],
        "gold": named[0],
        "counts": [("options", float(size))],
    }


def compared(
    arms: Sequence[ArmFactors], rows: list[dict[str, object]], resamples: int, swaps: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The scores and the comparisons of a run."""
    results = score(from_rows(rows, VERDICTS), arms, Settings(5, resamples, 2026, swaps=swaps))
    scores, comparisons = results
    return scores.to_pylist(), comparisons.to_pylist()


def claims(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The comparisons that claim a difference."""
    return [row for row in rows if row["decision"] in ("higher", "lower") or row["margin"] == "beyond"]


def null(experiments: int, patients: int, resamples: int, swaps: int) -> list[int]:
    """Number of claims printed by each experiment without any difference."""
    arms = arms_of(("clinical", "random@1", "kcenter"), ("8", "16", "32", "64"), ("standard", "reasoning"))
    counts = []
    for seed in range(experiments):
        rows = verdicts(arms, patients, np.random.default_rng([3, seed]))
        said = claims(compared(arms, rows, resamples, swaps)[1])
        counts.append(len(said))
        for one in said:
            print(f"  experiment {seed}: {sentence(one)}", flush=True)
    return counts


def power(experiments: int, patients: int, resamples: int, swaps: int) -> tuple[float, float, float]:
    """Shares of experiments that find the better prompt, alone and among FAMILY, and the mean difference."""
    arms = arms_of(("clinical",), ("16",), ("standard", "reasoning"))
    alone, among, differences = 0, 0, []
    for seed in range(experiments):
        rows = verdicts(arms, patients, np.random.default_rng([5, seed]), better=BETTER)
        _, found = compared(arms, rows, resamples, swaps)
        of_score = [row for row in found if (row["metric"], row["tier"]) == ("primary", 1)]
        alone += any(row["decision"] == "higher" for row in of_score)
        (pair,) = [row for row in of_score if row["arm_id"] is not None]
        among += FAMILY * pair["p"] <= 0.05 and pair["low"] > 0
        differences.append(pair["difference"])
    return alone / experiments, among / experiments, float(np.mean(differences))


BETTER = 0.385  # on the latent scale: 10 points on tier 1


def main() -> None:
    """Print both shares with their intervals."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, default in (("null", 200), ("power", 100), ("resamples", 500), ("swaps", 2000)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    given = arguments.parse_args()
    start = time.perf_counter()
    counts = null(given.null, 60, given.resamples, given.swaps)
    false = sum(count > 0 for count in counts)
    if counts:
        ends = stats.binomtest(false, len(counts)).proportion_ci(method="exact")
        print(f"null: {false} of {len(counts)} experiments print a claim ({sum(counts)} in all)")
        share = 100 * false / len(counts)
        print(f"  {share:.1f} %, 95 % interval {100 * ends.low:.1f} to {100 * ends.high:.1f} %")
    if given.power:
        alone, among, mean = power(given.power, 200, given.resamples, given.swaps)
        print(f"power, mean difference {mean:.1f} points: found in {100 * alone:.0f} %, of {given.power}")
        print(f"  among {FAMILY} comparisons: {100 * among:.0f} %")
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
