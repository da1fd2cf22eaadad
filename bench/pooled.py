"""What questions pooled over models show at the paper's size, and how often they claim what is not so.

    python -m bench.pooled                                # the table of bench/results/statistics.md
    python -m bench.pooled --cohorts 20 --patients 100 --models 6

Models x 3 selectors x 4 budgets x 2 prompts answer 20 questions of tier 1, four reports of ten findings and
two diagnoses of every patient. Answers share the patient, the item, what the frames of an arm
show of both, and the model's view of the item. Selections other than the clinical one lower the latent score
of an answer by a true effect; budgets and prompts change nothing. Product code makes the questions, their
tests and sentences.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from bench.claims import arms_of
from cardiolens.score.claims.sentences import sentence
from cardiolens.score.statistics.bootstrap import (
    Basis,
    effective_items,
    effective_patients,
    resampling_weights,
)
from cardiolens.score.statistics.comparisons import Effect, decided
from cardiolens.score.statistics.factors import ArmFactors, pooled_questions
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import ratio
from cardiolens.score.statistics.pairs import EffectKey
from cardiolens.score.statistics.pooled import pooled_rows
from cardiolens.score.statistics.statistic import Resampling, Row, Settings, Statistic

SELECTORS, BUDGETS = ("clinical", "kcenter", "random@1"), ("4", "8", "16", "32")
PROMPTS = ("standard", "reasoning")
QUESTIONS, REPORTS, FINDINGS = 20, 4, 10
CLASSES = ((0.35, 0.25, 0.2, 0.12, 0.08), (0.5, 0.3, 0.2))  # shares of the classes of both diagnoses
PATIENT_SD, ITEM_SD, VIEW_SD, MODEL_SD = 0.5, 0.8, 0.5, 0.4  # an answer's own part has SD 1
SHOWN_PATIENT_SD, SHOWN_ITEM_SD = 0.1, 0.5  # what the frames of a selection and budget show, to every model
WORDED_SD = 0.2  # what a prompt does to an item, for every model
INTERACTION_SD = 0.02  # of a model with a selection; their mean over the models is 0
ABILITY = 0.3
SLOPE = 0.25  # of accuracy, for 1 on the latent scale


def answers(
    arms: list[ArmFactors], patients: int, weights: Floats, effect: float, dice: np.random.Generator
) -> Iterator[dict[str, Floats]]:
    """The gold classes, then values of each arm on each tier in the cohort and its resamples, by model."""
    shape = patients, QUESTIONS + REPORTS * FINDINGS + len(CLASSES)
    items = ABILITY + dice.normal(0, PATIENT_SD, (patients, 1)) + dice.normal(0, ITEM_SD, shape)
    gold = [dice.choice(len(shares), patients, p=shares) for shares in CLASSES]
    yield {"gold": np.stack(gold).astype(float)}
    shown = {
        frames: dice.normal(0, SHOWN_PATIENT_SD, (patients, 1)) + dice.normal(0, SHOWN_ITEM_SD, shape)
        for frames in product(SELECTORS, BUDGETS)
    }
    worded = {prompt: dice.normal(0, WORDED_SD, shape) for prompt in PROMPTS}
    models = sorted({arm.model for arm in arms})
    interactions = dice.normal(0, INTERACTION_SD, (len(models), len(SELECTORS)))
    interactions -= interactions.mean(axis=0)
    for model, of_selectors in zip(models, interactions, strict=True):
        view = items + dice.normal(0, MODEL_SD) + dice.normal(0, VIEW_SD, shape)
        values: dict[str, Floats] = {}
        for arm in (arm for arm in arms if arm.model == model):
            shift = of_selectors[SELECTORS.index(arm.selector)]
            shift -= effect if arm.selector != "clinical" else 0.0
            seen = view + shown[arm.selector, arm.budget] + worded[arm.prompt]
            right = seen + shift + dice.normal(size=shape) > 0
            values[arm.arm_id] = np.stack([*_tiers(right, gold, weights, dice)])
        yield values


def _tiers(
    right: np.ndarray, gold: list[np.ndarray], weights: Floats, dice: np.random.Generator
) -> Iterator[Floats]:
    """Accuracy, micro-F1 of findings with as many false alarms as misses, mean macro-F1."""
    total = weights.sum(axis=1)
    yield weights @ right[:, :QUESTIONS].mean(axis=1) / total
    yield weights @ right[:, QUESTIONS : -len(CLASSES)].mean(axis=1) / total
    scores = []
    for truth, is_right, shares in zip(gold, right[:, -len(CLASSES) :].T, CLASSES, strict=True):
        size = len(shares)
        said = np.where(is_right, truth, (truth + dice.integers(1, size, len(truth))) % size)
        hit, called, true = (
            weights @ (classes[:, None] == np.arange(size))
            for classes in (np.where(is_right, truth, -1), said, truth)
        )
        scores.append(ratio(2 * hit, called + true).mean(axis=1))
    yield np.mean(scores, axis=0)


def compared(models: int, patients: int, effect: float, seed: int, weights: Floats) -> list[Row]:
    """The comparisons over the models of a simulated run, with what is decided."""
    arms = arms_of(SELECTORS, BUDGETS, PROMPTS, [f"m{number:02d}" for number in range(models)])
    asked = pooled_questions(arms)
    pairs = {pair for question in asked for weights in question.weights.values() for pair in weights}
    effects = {}
    pieces = answers(arms, patients, weights, effect, np.random.default_rng([23, seed]))
    sizes = [np.unique(classes, return_counts=True)[1] for classes in next(pieces)["gold"]]
    of_classes: dict[str, Any] = {"n_effective": effective_patients(sizes)}
    of_classes |= {"effective_items": effective_items(sizes), "n_items": len(CLASSES) * patients}
    plain = Basis(QUESTIONS * patients, patients, 0, 0)
    of_reports = replace(plain, n_items=REPORTS * patients, n_entities=REPORTS * FINDINGS * patients)
    bases = [plain, of_reports, replace(plain, **of_classes)]
    for values in pieces:
        for ours, theirs in sorted(pairs):
            if ours in values:
                effects[ours, theirs] = _effects(values[ours] - values[theirs], bases)
    rows = pooled_rows(asked, effects, Resampling(Settings(5, len(weights) - 1, 2026), weights))
    return [row | decided({"p_adjusted": None, "adjustment": None, **row}) for row in rows]


def _effects(change: Floats, bases: list[Basis]) -> dict[EffectKey, Effect]:
    differences = {
        ("primary", f"tier:{tier}"): Statistic(values, basis, of_pairs=True)
        for tier, values, basis in zip((1, 2, 3), change, bases, strict=True)
    }
    return {
        (key, is_differing): Effect.of(difference)
        for key, difference in differences.items()
        for is_differing in (False, True)
    }


def main() -> None:
    """Print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    for name, default in (("cohorts", 200), ("patients", 670), ("models", 24), ("resamples", 1000)):
        arguments.add_argument(f"--{name}", type=int, default=default)
    given = arguments.parse_args()
    weights = resampling_weights(given.patients, given.resamples, 2026)
    columns = "effect", "tier", "difference", "standard error", "found %", "equivalent %", "any false claim %"
    print(f"| {' | '.join(columns)} |\n{'|---' * len(columns)}|")
    for points in (0, 3):
        n_false, table = 0, np.zeros((3, 4))
        for seed in range(given.cohorts):
            rows = compared(given.models, given.patients, points / 100 / SLOPE, seed, weights)
            false = [
                sentence({"model": None, "n_models": None, **row}) for row in rows if _is_false(row, points)
            ]
            n_false += bool(false)
            print(*false, sep="\n", end="\n" * bool(false), file=sys.stderr)
            table += [_shown(row) for row in rows if row["level"] == "kcenter" and not row.get("model")]
        for tier, (value, error, found, same) in enumerate(table / given.cohorts, start=1):
            shares = f"{found:.1f} | {same:.1f} | {100 * n_false / given.cohorts:.1f}"
            print(f"| {points} | {tier} | {value:.2f} | {error:.2f} | {shares} |", flush=True)


def _shown(row: Row) -> tuple[float, ...]:
    """A difference, its standard error, and in percent whether it or an equivalence is claimed."""
    found, same = row["decision"] == "lower", row["margin"] == "within"
    return row["difference"], (row["high"] - row["low"]) / 3.92, 100 * found, 100 * same


def _is_false(row: Row, points: int) -> bool:
    """Whether a claim is false: budgets and prompts do nothing, selections lower scores by `points`."""
    lowers = row["factor"] == "selector" and points > 0
    if row["margin"] == "within":
        return lowers and points > 2
    return row["decision"] == "higher" or (row["decision"] == "lower" and not lowers)


if __name__ == "__main__":
    main()
