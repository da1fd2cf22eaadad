"""Check of intervals and tests on simulated cohorts: coverage of 95 % intervals, level of tests.

    python -m bench.coverage                    # the table of bench/results/statistics.md
    python -m bench.coverage --edges --patients 8 12 20 40 200
    python -m bench.coverage --cohorts 100 --patients 50

A patient's items share an effect, and so do the answers of two arms to one patient. The true value of a
statistic is its mean over five cohorts of 1,000,000 simulated patients each. The product's code computes
every statistic, interval, test and verdict.
"""

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import special

from cardiolens.score.statistics import metrics
from cardiolens.score.statistics.bootstrap import (
    Basis,
    effective_items,
    effective_patients,
    percentile,
    resampling_weights,
)
from cardiolens.score.statistics.confidence import ConfidentAnswers, confidence_curves
from cardiolens.score.statistics.counting import Kind as PartKind
from cardiolens.score.statistics.counting import Part, answer_cells, kind_values
from cardiolens.score.statistics.hypothesis_tests import coins, margin_side, swap_p
from cardiolens.score.statistics.metrics import of_entities
from cardiolens.score.statistics.statistic import Statistic

Floats = NDArray[np.float64]

TRUTH_COHORTS, TRUTH_PATIENTS = 5, 1_000_000
PATIENT_SD = 0.7  # of a patient's effect that both arms share; the SD of items is 1
ARM_SD = 0.3  # of a patient's effect on one arm
SHIFTS = (0.0, -0.12)  # mean effect of each of the two arms
SHARES = {3: (0.2, 0.3, 0.5), 5: (0.4, 0.25, 0.15, 0.12, 0.08)}  # of the classes, by number of diagnoses
ENTITY_COUNTS = ("tp", "fp", "fn", "abnormal_tp", "abnormal_fp", "abnormal_fn", "gates", "contradicted")


@dataclass(frozen=True)
class Kind:
    """One simulated subtask."""

    answer_type: str
    size: int
    difficulty: float
    asked: float  # share of patients of whom the subtask is asked
    shares: tuple[float, ...] | None = None  # of its classes


# A quarter of tier 1 with the same mixture of answer types and of conditional subtasks.
UNDERSTANDING = tuple(
    Kind("multi" if at % 2 else "single", 4, 0.9 - 0.1 * at, 0.4 if at % 4 < 2 else 1.0) for at in range(8)
)
DIAGNOSIS = (Kind("single", 3, 0.4, 1.0, SHARES[3]), Kind("single", 5, 0.2, 0.5, SHARES[5]))
REPORTS = 4
RISK = 0.5  # of the least confident answers that are wrong


@dataclass(frozen=True)
class AnswerMasks:
    """Options that are right and those that were named, as bits, by item."""

    gold: NDArray[np.int64]
    parsed: NDArray[np.int64]
    size: int

    def values(self, kind: PartKind, patient: NDArray[np.int64], weights: Floats) -> dict[str, Floats]:
        """The product's statistics of a subtask, in the cohort and its resamples."""
        classes = tuple(bit for bit in range(self.size) if (self.gold >> bit & 1).any())
        part = Part("X01", 1, kind, classes, len(self.gold))
        cells = metrics.by_patient(answer_cells(part, self.gold, self.parsed), patient, weights.shape[1])
        return kind_values(kind, cells @ weights.T)


@dataclass(frozen=True)
class Cohort:
    """Latent effects of the patients of one cohort, by arm."""

    dice: np.random.Generator
    effects: Floats  # (arm, patient)

    @staticmethod
    def draw(dice: np.random.Generator, patients: int) -> "Cohort":
        shared = dice.normal(0, PATIENT_SD, patients)
        own = dice.normal(0, ARM_SD, (2, patients))
        return Cohort(dice, np.array(SHIFTS)[:, None] + shared + own)

    @property
    def patients(self) -> int:
        return self.effects.shape[1]

    def answers(self, kind: Kind) -> tuple[NDArray[np.int64], list[AnswerMasks]]:
        """Draw the patients of whom a subtask is asked, and each arm's answers."""
        asked = np.flatnonzero(self.dice.random(self.patients) < kind.asked)
        answer = self._sets if kind.answer_type == "multi" else self._classes
        return asked, answer(kind, self.effects[:, asked] + kind.difficulty)

    def _sets(self, kind: Kind, latent: Floats) -> list[AnswerMasks]:
        bits = 1 << np.arange(kind.size)
        true = self.dice.random((latent.shape[1], kind.size)) < 0.35
        true[~true.any(axis=1), 0] = True
        right = latent[..., None] + self.dice.normal(size=(*latent.shape, kind.size)) > 0
        return [AnswerMasks(true @ bits, (true == found) @ bits, kind.size) for found in right]

    def _classes(self, kind: Kind, latent: Floats) -> list[AnswerMasks]:
        shares = kind.shares or (1 / kind.size,) * kind.size
        true = self.dice.choice(kind.size, latent.shape[1], p=shares)
        right = latent + self.dice.normal(size=latent.shape) > 0
        wrong = (true + self.dice.integers(1, kind.size, latent.shape)) % kind.size
        return [
            AnswerMasks(1 << true, 1 << np.where(r, true, w), kind.size)
            for r, w in zip(right, wrong, strict=True)
        ]

    def entities(self) -> Floats:
        """Values of ENTITY_COUNTS for one report per patient, shape (arm, patient, name)."""
        number = self.dice.poisson(4, self.patients) + 1
        found = self.dice.binomial(number, 1 / (1 + np.exp(-self.effects - 0.5)))
        counts = np.zeros((2, self.patients, len(ENTITY_COUNTS)))
        counts[..., 0], counts[..., 2] = found, number - found
        counts[..., 1] = self.dice.poisson(np.exp(-0.5 * self.effects))
        return counts


def statistics(cohort: Cohort, weights: Floats) -> dict[str, Statistic]:
    """Compute tier scores and their differences."""
    sizes: list[NDArray[np.int64]] = []
    report_scores, entities = _report_scores(cohort, weights)
    tiers = {
        1: _mean(cohort, weights, UNDERSTANDING, "primary", []),
        2: report_scores,
        3: _mean(cohort, weights, DIAGNOSIS, "macro_f1", sizes),
    }
    tier_1, tier_2 = (
        Basis(items * cohort.patients, cohort.patients, 0, 0) for items in (len(UNDERSTANDING), REPORTS)
    )
    whole = Basis(len(DIAGNOSIS) * cohort.patients, cohort.patients, 0, 0)
    basis = {1: tier_1, 2: replace(tier_2, n_entities=entities), 3: replace(whole, **_worth(sizes))}
    found = {f"tier {tier}": Statistic(arms[0], basis[tier]) for tier, arms in tiers.items()}
    return found | {
        f"tier {tier} difference": Statistic(arms[0] - arms[1], basis[tier], of_pairs=True)
        for tier, arms in tiers.items()
    }


def _worth(sizes: list[NDArray[np.int64]]) -> dict[str, float]:
    return {"n_effective": effective_patients(sizes), "effective_items": effective_items(sizes)}


def _mean(
    cohort: Cohort, weights: Floats, kinds: tuple[Kind, ...], metric: str, sizes: list[NDArray[np.int64]]
) -> Floats:
    """Means of a metric over subtasks, shape (arm, 1 + resamples); `sizes` receives gold class sizes."""
    values = [_values(cohort, weights, kind, metric, sizes) for kind in kinds]
    return np.asarray(metrics.mean_defined(np.stack(values, axis=-1)))


def _values(
    cohort: Cohort, weights: Floats, kind: Kind, metric: str, sizes: list[NDArray[np.int64]]
) -> Floats:
    asked, arms = cohort.answers(kind)
    sizes.append(np.unique(arms[0].gold, return_counts=True)[1])
    of_part: PartKind = (
        "diagnosis" if metric == "macro_f1" else "set" if kind.answer_type == "multi" else "choice"
    )
    return np.stack([answered.values(of_part, asked, weights)[metric] for answered in arms])


def _report_scores(cohort: Cohort, weights: Floats) -> tuple[Floats, int]:
    values, entities = [], 0
    for _ in range(REPORTS):
        counts = cohort.entities()
        sums = np.moveaxis(weights @ counts, -1, 0)
        values.append(of_entities(dict(zip(ENTITY_COUNTS, sums, strict=True)))["entity_f1"])
        entities += int(counts[0, :, [0, 2]].sum())  # found and missed
    return np.stack(values).mean(axis=0), entities


def truths() -> dict[str, float]:
    """True values: mean statistics of cohorts so large that chance is negligible."""
    once = np.ones((1, TRUTH_PATIENTS))
    cohorts = [
        statistics(Cohort.draw(np.random.default_rng([1, number]), TRUTH_PATIENTS), once)
        for number in range(TRUTH_COHORTS)
    ]
    return {name: 100 * float(np.mean([one[name].values[0] for one in cohorts])) for name in cohorts[0]}


def coverage(patients: int, cohorts: int, resamples: int, truth: dict[str, float]) -> Iterator[str]:
    """Rows of the coverage table for one cohort size."""
    weights = resampling_weights(patients, resamples, 2026)
    covered = dict.fromkeys(truth, 0)
    within = dict.fromkeys(truth, 0)
    width = dict.fromkeys(truth, 0.0)
    for seed in range(cohorts):
        cohort = Cohort.draw(np.random.default_rng([7, seed]), patients)
        for name, statistic in statistics(cohort, weights).items():
            interval = statistic.interval("primary")
            covered[name] += interval.low <= truth[name] <= interval.high
            width[name] += (interval.high - interval.low) / cohorts
            # at the margin: how often is a difference of exactly the margin called equivalent
            narrow = statistic.interval("primary", level=0.9)
            within[name] += margin_side(narrow, margin=abs(truth[name])) == "within"
    for name, value in truth.items():
        erred = f"{100 * within[name] / cohorts:.1f}" if "difference" in name else ""
        share = 100 * covered[name] / cohorts
        yield f"| {patients} | {name} | {value:.2f} | {width[name]:.1f} | {share:.1f} | {erred} |"


def false_positives(cohorts: int) -> Iterator[str]:
    """Rows of the table of tests at 5 % without any true difference."""
    tests: dict[str, Callable[[np.random.Generator], float]] = {
        "swaps, 40 patients of 10 correlated items": lambda dice: _swapped(dice, 40, 10),
        "swaps, 12 patients of 10 correlated items": lambda dice: _swapped(dice, 12, 10),
    }
    for name, test in tests.items():
        rejected = sum(test(np.random.default_rng([11, seed])) <= 0.05 for seed in range(cohorts))
        yield f"| {name} | {100 * rejected / cohorts:.1f} |"


def edges(patients: int, items: int, cohorts: int, resamples: int) -> Iterator[str]:
    """Rows of coverage near the boundary: accuracy, and how often two arms that differ are called equivalent.

    The bootstrap alone stands beside the product's interval, with both mean widths.
    """
    weights = resampling_weights(patients, resamples, 2026)
    basis = Basis(patients * items, patients, 0, 0)
    for effect in (1.0, 3.0) if items > 1 else (1.0,):
        for truth in (0.5, 0.75, 0.9, 0.95, 0.98, 1.0):
            tally = np.zeros(5)
            for seed in range(cohorts):
                dice = np.random.default_rng([13, seed, patients, items])
                right = _clustered(dice, patients, items, truth, effect)
                share = Statistic(weights @ right / (patients * items), basis)
                tally += held(share, truth)
                other = _clustered(dice, patients, items, 0.95, effect)
                pair = Statistic(weights @ (items - other) / (patients * items), basis, of_pairs=True)
                narrow = pair.interval("primary", 0.9)
                tally[4] += margin_side(narrow) == "within"
            bootstrap, product, *widths, false = 100 * tally / cohorts
            yield (
                f"| {patients} | {items} | {effect:g} | {100 * truth:g} | {bootstrap:.1f} | {product:.1f} "
                f"| {widths[0]:.1f} | {widths[1]:.1f} | {false:.1f} |"
            )


def macro_edges(patients: int, cohorts: int, resamples: int) -> Iterator[str]:
    """Rows of coverage of macro-F1 near the boundary: three classes of unequal size, one item a patient."""
    shares = np.array((0.6, 0.3, 0.1))
    weights = resampling_weights(patients, resamples, 2026)
    for right in (0.5, 0.75, 0.9, 0.95, 0.98, 1.0):
        precision = shares * right / (shares * right + (1 - shares) * (1 - right) / 2)
        truth = float(np.mean(2 * precision * right / (precision + right)))
        tally = np.zeros(5)
        for seed in range(cohorts):
            dice = np.random.default_rng([19, seed, patients])
            true = dice.choice(3, patients, p=shares)
            wrong = (true + dice.integers(1, 3, patients)) % 3
            answered = AnswerMasks(1 << true, 1 << np.where(dice.random(patients) < right, true, wrong), 3)
            values = answered.values("diagnosis", np.arange(patients), weights)["macro_f1"]
            worth = _worth([np.unique(true, return_counts=True)[1]])
            basis = replace(Basis(patients, patients, 0, 0), **worth)
            tally += held(Statistic(values, basis), truth)
        bootstrap, product, before, width, _ = 100 * tally / cohorts
        yield (
            f"| {patients} | macro-F1 | 1 | {100 * truth:.1f} | {bootstrap:.1f} | {product:.1f} "
            f"| {before:.1f} | {width:.1f} | |"
        )


def risk_edges(patients: int, items: int, cohorts: int, resamples: int) -> Iterator[str]:
    """Rows of coverage of the share wrong among the most confident answers."""
    for coverage in (0.1, 0.2, 0.4, 0.7):
        covers, width = risk(patients, items, coverage, cohorts, resamples)
        yield f"| {patients} | {items} | {100 * coverage:g} | {covers:.1f} | {width:.1f} |"


def risk(patients: int, items: int, coverage: float, cohorts: int, resamples: int) -> tuple[float, float]:
    """How often, in percent, the interval of a risk holds the truth, and its mean width.

    Confidence c is uniform, and wrong answers are RISK (1 - c) of those with it.
    """
    weights = resampling_weights(patients, resamples, 2026)
    truth = RISK * coverage / 2
    patient = np.repeat(np.arange(patients), items)
    tally = np.zeros(2)
    for seed in range(cohorts):
        dice = np.random.default_rng([29, seed, patients])
        confidence = dice.random(patients * items)
        own = np.repeat(dice.normal(0, PATIENT_SD, patients), items) if items > 1 else 0.0
        latent = (own + dice.normal(size=patients * items)) / np.sqrt(1 + PATIENT_SD**2 * (items > 1))
        right = special.ndtr(latent) > RISK * (1 - confidence)
        answers = ConfidentAnswers(confidence, right, patient, np.full(len(patient), "ok"))
        statistic = confidence_curves(answers, weights)[f"risk.{100 * coverage:.0f}"]
        interval = statistic.interval("risk")
        tally += interval.low <= 100 * truth <= interval.high, (interval.high - interval.low) / 100
    covers, width = 100 * tally / cohorts
    return float(covers), float(width)


def _clustered(dice: np.random.Generator, patients: int, items: int, truth: float, effect: float) -> Floats:
    """Right items of each patient, whose items correlate so that the design effect is `effect`."""
    share: Floats = np.full(patients, truth)
    if effect > 1 and truth < 1:
        correlation = (effect - 1) / (items - 1)
        share = dice.beta(*((1 - correlation) / correlation * np.array([truth, 1 - truth])), patients)
    return dice.binomial(items, share).astype(np.float64)


def held(statistic: Statistic, truth: float) -> Floats:
    """Whether the intervals of bootstrap and product hold the truth, both widths, and a 0."""
    basis, product = statistic.basis, statistic.interval("primary")
    bootstrap = percentile(statistic.values, patients=min(basis.n_patients, basis.n_effective))
    ends = (bootstrap.low, bootstrap.high), (product.low / 100, product.high / 100)
    holds = [low - 1e-12 <= truth <= high + 1e-12 for low, high in ends]
    return np.array([*holds, *(high - low for low, high in ends), 0.0])


def _pair(
    dice: np.random.Generator, patients: int, items: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Correctness, shape (patient, item), of two equally good arms; each has its own effect per patient."""
    shared = dice.normal(0, PATIENT_SD, (patients, 1))
    own = dice.normal(0, PATIENT_SD if items > 1 else 0, (2, patients, 1))
    right = 0.4 + shared + own + dice.normal(size=(2, patients, items)) > 0
    return right[0], right[1]


def _swapped(dice: np.random.Generator, patients: int, items: int) -> float:
    first, second = _pair(dice, patients, items)
    sides = [right.sum(axis=1, dtype=np.float64)[None] for right in (first, second)]
    size = first.size

    def accuracy(sums: Floats) -> dict[tuple[str, str], Floats]:
        return {("primary", "tier:1"): sums[0] / size}

    return swap_p(sides[0], sides[1], accuracy, coins(patients, 2026, 999))["primary", "tier:1"]


def main() -> None:
    """Print both tables in Markdown."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--cohorts", type=int, default=1000)
    arguments.add_argument("--resamples", type=int, default=500)
    arguments.add_argument("--patients", type=int, nargs="+", default=[20, 50, 200, 670])
    arguments.add_argument("--edges", action="store_true", help="the table of intervals near the boundary")
    given = arguments.parse_args()
    if given.edges:
        print("| patients | items | design effect | truth % | bootstrap covers % | product covers % ", end="")
        print("| width before | width | 100 % against 95 % called equivalent % |")
        print("|---|---|---|---|---|---|---|---|---|")
        for patients in given.patients:
            for items in (1, 5, 20):
                for row in edges(patients, items, given.cohorts, given.resamples):
                    print(row, flush=True)
            for row in macro_edges(patients, given.cohorts, given.resamples):
                print(row, flush=True)
        print("\n| patients | items | kept % | risk covers % | width |\n|---|---|---|---|---|")
        for patients in given.patients:
            for items in (1, 5):
                for row in risk_edges(patients, items, given.cohorts, given.resamples):
                    print(row, flush=True)
        return
    truth = truths()
    print("| patients | statistic | truth | mean width | coverage % | called equivalent at the margin % |")
    print("|---|---|---|---|---|---|")
    for patients in given.patients:
        for row in coverage(patients, given.cohorts, given.resamples, truth):
            print(row, flush=True)
    print("\n| test without a difference | rejected at 5 % |\n|---|---|")
    for row in false_positives(2 * given.cohorts):
        print(row, flush=True)


if __name__ == "__main__":
    main()
