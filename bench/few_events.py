"""How often criterion and d' of two prompts that do nothing are said to differ, where few answers are wrong.

    python -m bench.few_events --runs 200

Patients of one to four gates are read by one to three models with the same chances of hits and false alarms
under both prompts; half of the answers are the same in both. Beside the product's p stands that of a
bootstrap whose degrees of freedom are the patients'.
"""

import argparse
import math
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from cardiolens.score.statistics.bootstrap import Basis, resampling_weights
from cardiolens.score.statistics.comparisons import comparison
from cardiolens.score.statistics.items import Items
from cardiolens.score.statistics.metrics import (
    CRITERION,
    D_PRIME,
    by_patient,
    call_counts,
    effective_patients_of_calls,
    of_calls,
)
from cardiolens.score.statistics.pooled import two_sided_p
from cardiolens.score.statistics.statistic import Statistic

Floats = NDArray[np.float64]

SETTINGS = (  # patients, of them abnormal, hits, false alarms, gates, models
    *((20, 5, 0.97, 0.03, 4, 3), (40, 20, 0.97, 0.03, 1, 1), (40, 20, 0.97, 0.03, 4, 3)),
    *((40, 10, 0.80, 0.20, 4, 3), (120, 40, 0.97, 0.03, 4, 1), (400, 100, 0.98, 0.50, 4, 3)),
)
RESAMPLES = 400
SAME = 0.5  # of the answers of both prompts


def one_gate(gate: int, gold: Floats, called: Floats) -> Items:
    """Items of a gate, one a patient: options A, normal, and B."""
    number = len(gold)
    ones, word = np.ones(number, np.int64), np.full(number, "L01")
    return Items(
        subtask=np.full(number, f"G{gate}"),
        sequence=word,
        answer_type=np.full(number, "single"),
        parse_status=np.full(number, "ok"),
        question=np.arange(number),
        request=np.arange(number),
        patient=np.arange(number),
        tier=ones,
        options=2 * ones,
        gold=np.where(gold > 0, 2, 1),
        parsed=np.where(called > 0, 2, 1),
        judged=np.ones(number, bool),
    )


def resampled(side: Items, weights: Floats) -> dict[str, Floats]:
    """Criterion and d' of a gate in the cohort and its resamples."""
    return of_calls(by_patient(call_counts(side), side.patient, weights.shape[1]) @ weights.T)


def changes_of(
    setting: tuple[int, int, float, float, int, int], weights: Floats, dice: np.random.Generator
) -> tuple[dict[str, list[Floats]], float]:
    """Differences of both prompts by gate and model, and the patients that the least known model is worth."""
    patients, abnormal, hits, false_alarms, gates, models = setting
    changes: dict[str, list[Floats]] = {CRITERION: [], D_PRIME: []}
    worth = math.inf
    for _ in range(models):
        read: list[Items] = []
        for gate in range(gates):
            gold = dice.permutation(np.arange(patients) < abnormal).astype(float)
            common = dice.random(patients)
            sides = []
            for _ in range(2):
                latent = np.where(dice.random(patients) < SAME, common, dice.random(patients))
                called = (latent < np.where(gold > 0, hits, false_alarms)).astype(float)
                sides.append(one_gate(gate, gold, called))
            ours, theirs = resampled(sides[0], weights), resampled(sides[1], weights)
            for name, of_gates in changes.items():
                of_gates.append(ours[name] - theirs[name])
            read.append(sides[0])
        worth = min(worth, effective_patients_of_calls(reduce(Items.joined_with, read)))
    return changes, worth


def rejections(setting: tuple[int, int, float, float, int, int], runs: int) -> Floats:
    """Percent of runs rejected at 5 %: criterion and d', each by the plain bootstrap and by the product."""
    patients, *_, gates, models = setting
    rejected = np.zeros(4)
    for run in range(runs):
        weights = resampling_weights(patients, RESAMPLES, run)
        changes, worth = changes_of(setting, weights, np.random.default_rng([41, run]))
        for at, (name, of_gates) in enumerate(changes.items()):
            values = np.mean(of_gates, axis=0)
            for column, effective in ((2 * at, math.inf), (2 * at + 1, worth)):
                basis = Basis(patients * gates * models, patients, 0, 0, n_effective=effective)
                row = comparison((name, "tier:1"), Statistic(values, basis, of_pairs=True), "")
                rejected[column] += two_sided_p(values, row, basis.units) <= 0.05
    return 100 * rejected / runs


def main() -> None:
    """Print the table of bench/results/statistics.md."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=int, default=200)
    runs = arguments.parse_args().runs
    print("| patients | abnormal | hits | false alarms | gates | models ", end="")
    print("| c, plain % | c % | d', plain % | d' % |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        found = " | ".join(f"{share:.1f}" for share in rejections(setting, runs))
        print(f"| {' | '.join(map(str, setting))} | {found} |", flush=True)


if __name__ == "__main__":
    main()
