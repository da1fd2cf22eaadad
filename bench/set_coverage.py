"""Coverage of 95 % intervals of micro-F1 and of AUROC, in the middle and near the boundary.

    python -m bench.set_coverage --patients 12 20 40 200 --cohorts 300 --resamples 400

Micro-F1: sets of four options, two of them right, from patients whose errors correlate. AUROC: one item a
patient, scores of two normal distributions. The product's interval stands beside that of the bootstrap alone.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bench.coverage import AnswerMasks, held
from cardiolens.score.statistics.bootstrap import Basis, resampling_weights
from cardiolens.score.statistics.confidence import Curve, auroc
from cardiolens.score.statistics.statistic import Statistic

Floats = NDArray[np.float64]

OPTIONS, RIGHT = 4, 2
PATIENT_SD = 0.7  # of the latent quality of a patient's answers; that of an option is 1
TRUTH_PATIENTS = 200_000


def answered(dice: np.random.Generator, patients: int, items: int, level: float) -> AnswerMasks:
    """Sets of two right options of four, each option answered wrong with a chance that patients share."""
    gold = np.array([sum(1 << bit for bit in dice.choice(OPTIONS, RIGHT, replace=False)) for _ in range(64)])
    true = gold[dice.integers(0, 64, patients * items)]
    quality = level + np.repeat(dice.normal(0, PATIENT_SD, patients), items)
    wrong = dice.normal(size=(patients * items, OPTIONS)) > quality[:, None]
    flips = (wrong << np.arange(OPTIONS)).sum(axis=1)
    return AnswerMasks(true, true ^ flips, OPTIONS)


def micro_f1(answers: AnswerMasks, patients: int, weights: Floats) -> Floats:
    """Micro-F1 of the cohort and its resamples."""
    items = len(answers.gold) // patients
    return answers.values("set", np.repeat(np.arange(patients), items), weights)["primary"]


def of_sets(patients: int, items: int, cohorts: int, resamples: int) -> Iterator[str]:
    """Rows of coverage of micro-F1."""
    weights = resampling_weights(patients, resamples, 2026)
    for level in (0.8, 1.6, 2.2, 2.8):
        once = np.ones((1, TRUTH_PATIENTS))
        many = answered(np.random.default_rng(5), TRUTH_PATIENTS, 1, level)
        truth = float(micro_f1(many, TRUTH_PATIENTS, once)[0])
        tally = np.zeros(5)
        for seed in range(cohorts):
            sample = answered(np.random.default_rng([23, seed, patients, items]), patients, items, level)
            basis = Basis(patients * items, patients, 0, 0, n_entities=RIGHT * patients * items)
            tally += held(Statistic(micro_f1(sample, patients, weights), basis), truth)
        yield _row(f"micro-F1 of {items} items a patient", patients, truth, tally / cohorts)


def of_discrimination(patients: int, cohorts: int, resamples: int) -> Iterator[str]:
    """Rows of coverage of AUROC where a half, or a quarter, of the patients are positive."""
    from scipy import stats

    weights = resampling_weights(patients, resamples, 2026)
    for share in (0.5, 0.25):
        for truth in (0.5, 0.75, 0.9, 0.97):
            apart = float(stats.norm.ppf(truth)) * np.sqrt(2)
            tally, number = np.zeros(5), 0
            for seed in range(cohorts):
                dice = np.random.default_rng([29, seed, patients])
                positive = np.arange(patients) < share * patients
                score = dice.normal(size=patients) + apart * positive
                basis = Basis(patients, patients, 0, 0).of_two_classes(positive, np.arange(patients))
                if basis.without_interval:
                    continue
                values = auroc(Curve.of(score, positive, weights))
                tally, number = tally + held(Statistic(values, basis), truth), number + 1
            if number:
                yield _row(f"AUROC, {share:.0%} positive", patients, truth, tally / number)


def _row(name: str, patients: int, truth: float, tally: Floats) -> str:
    bootstrap, product, before, width, _ = 100 * tally
    return (
        f"| {patients} | {name} | {100 * truth:.1f} | {bootstrap:.1f} | {product:.1f} "
        f"| {before:.1f} | {width:.1f} |"
    )


def main() -> None:
    """Print the table of bench/results/statistics.md."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--patients", type=int, nargs="+", default=[12, 20, 40, 200])
    arguments.add_argument("--cohorts", type=int, default=300)
    arguments.add_argument("--resamples", type=int, default=400)
    given = arguments.parse_args()
    print("| patients | statistic | truth % | bootstrap covers % | covers % | width before | width |")
    print("|---|---|---|---|---|---|---|")
    for patients in given.patients:
        for items in (1, 5):
            print(*of_sets(patients, items, given.cohorts, given.resamples), sep="\n", flush=True)
        rows = [*of_discrimination(patients, given.cohorts, given.resamples)]
        if rows:
            print(*rows, sep="\n", flush=True)


if __name__ == "__main__":
    main()
