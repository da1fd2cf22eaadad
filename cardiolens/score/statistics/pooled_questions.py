"""The questions of a sweep, each pooled over its models, and the pairs of arms behind them (17.6)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product

import numpy as np

from cardiolens.config.sweep_factors import REFERENCES
from cardiolens.score.statistics.collapse import ENTROPY_DEFICIT
from cardiolens.score.statistics.factors import ArmFactors, ArmPair
from cardiolens.score.statistics.statistic import Key

PREFIX = "pooled:"
COLLAPSE = "collapse"  # in place of a factor
COLLAPSE_KEYS: tuple[Key, ...] = ((ENTROPY_DEFICIT, "tier:1"), (ENTROPY_DEFICIT, "tier:3"))
DOUBLING = "per doubling"
_FEWEST_FOR_SLOPE = 3

Setting = tuple[str, ...]  # levels of the other factors; seeds of a selection are no setting of their own
_Level = Callable[[ArmFactors], str]


@dataclass(frozen=True, slots=True)
class PooledQuestion:
    """What a level of a factor does in place of another, as one mean over models of equal weight.

    `weights` are by model and by pair of arms: a model's effect is the weighted sum of their differences.
    """

    factor: str
    ours: str
    theirs: str
    settings: int
    weights: Mapping[str, Mapping[ArmPair, float]]

    @property
    def arm_id(self) -> str:
        """The name of our side in the table of scores."""
        return f"{PREFIX}{self.factor}={self.ours}"

    @property
    def versus_arm_id(self) -> str:
        """The name of the other side in the table of scores."""
        return f"{PREFIX}{self.factor}={self.theirs}"


def pooled_questions(arms: Sequence[ArmFactors]) -> list[PooledQuestion]:
    """The questions that the models of a run answer: selection, budget, prompt and controls.

    Each selector is compared with `clinical`, the largest budget with the smallest (and the slope over three
    or more), each prompt with `standard`, no control with each. Simulated readers are no models. A question
    rests on the settings of the other factors that all its models share; without any it is not asked.
    """
    models = [arm for arm in arms if not arm.simulated]
    plain = [arm for arm in models if arm.control == "none"]
    questions = [
        _contrast(plain, "selector", _protocol, name, REFERENCES["selector"])
        for name in _levels(plain, _protocol, REFERENCES["selector"])
    ]
    questions += _of_budgets(plain)
    questions += [
        _contrast(plain, "prompt", _prompt, name, REFERENCES["prompt"])
        for name in _levels(plain, _prompt, REFERENCES["prompt"])
    ]
    questions += [
        _contrast(models, "control", _control, REFERENCES["control"], name)
        for name in _levels(models, _control, REFERENCES["control"])
    ]
    return [question for question in questions if question.weights]


def _protocol(arm: ArmFactors) -> str:
    return arm.protocol


def _budget(arm: ArmFactors) -> str:
    return arm.budget


def _prompt(arm: ArmFactors) -> str:
    return arm.prompt


def _control(arm: ArmFactors) -> str:
    return arm.control


def _levels(arms: Sequence[ArmFactors], level: _Level, reference: str) -> list[str]:
    return sorted({level(arm) for arm in arms} - {reference})


def _of_budgets(arms: Sequence[ArmFactors]) -> Iterator[PooledQuestion]:
    budgets = sorted({int(arm.budget) for arm in arms if arm.budget.isdecimal()})
    if len(budgets) < 2:
        return
    smallest = str(budgets[0])
    steps = [_contrast(arms, "budget", _budget, str(budget), smallest) for budget in budgets[1:]]
    yield steps[-1]
    if len(budgets) >= _FEWEST_FOR_SLOPE and all(
        step.weights.keys() == steps[-1].weights.keys() for step in steps
    ):
        doublings = np.log2(budgets) - np.log2(budgets).mean()
        slopes = doublings[1:] / (doublings**2).sum()
        weights = {
            model: {
                pair: float(slope) * weight
                for step, slope in zip(steps, slopes, strict=True)
                for pair, weight in step.weights[model].items()
            }
            for model in steps[-1].weights
        }
        yield PooledQuestion("budget", DOUBLING, smallest, steps[-1].settings, weights)


def _contrast(
    arms: Sequence[ArmFactors], factor: str, level: _Level, ours: str, theirs: str
) -> PooledQuestion:
    """Pairs of arms of one model that differ in a factor alone, in the settings that all models share."""
    by_model = {
        model: _pairs(list(of_model), factor, level, ours, theirs)
        for model, of_model in groupby(sorted(arms, key=lambda arm: arm.model), key=lambda arm: arm.model)
    }
    by_model = {model: pairs for model, pairs in by_model.items() if pairs}
    shared = set[Setting]().union(*by_model.values()).intersection(*by_model.values())
    weights = {
        model: {
            pair: 1 / len(shared) / len(pairs[setting])
            for setting in sorted(shared)
            for pair in pairs[setting]
        }
        for model, pairs in by_model.items()
        if shared
    }
    return PooledQuestion(factor, ours, theirs, len(shared), weights)


def _pairs(
    arms: Sequence[ArmFactors], factor: str, level: _Level, ours: str, theirs: str
) -> dict[Setting, list[ArmPair]]:
    sides: tuple[dict[Setting, dict[str, list[str]]], ...] = ({}, {})
    for arm in arms:
        if level(arm) in (ours, theirs):
            seed = "" if factor == "selector" else arm.selector
            by_seed = sides[level(arm) == theirs].setdefault(_setting(arm, factor), {})
            by_seed.setdefault(seed, []).append(arm.arm_id)
    return {
        setting: pairs
        for setting, by_seed in sides[0].items()
        if setting in sides[1]
        for pairs in [
            [
                pair
                for seed in sorted(by_seed.keys() & sides[1][setting].keys())
                for pair in product(sorted(by_seed[seed]), sorted(sides[1][setting][seed]))
            ]
        ]
        if pairs
    }


def _setting(arm: ArmFactors, factor: str) -> Setting:
    levels = {
        "selector": arm.protocol,
        "budget": arm.budget,
        "prompt": arm.prompt,
        "control": arm.control,
        "wording": arm.wording,
    }
    return tuple(value for name, value in levels.items() if name != factor)
