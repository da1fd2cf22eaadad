"""The questions of a sweep, each pooled over its models, and the pairs of arms behind them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, product

import numpy as np

from cardiolens.config.sweep_factors import REFERENCES
from cardiolens.score.statistics.factors import ArmFactors, ArmPair
from cardiolens.score.statistics.headlines import Headlines

COLLAPSE, ANSWERS, TRUTH = "collapse", "answers", "truth"  # in place of a factor and its levels
DOUBLING = "per doubling"
_FEWEST_FOR_SLOPE = 3

Setting = tuple[str, ...]  # levels of the other factors; seeds of a selection are no setting of their own
_Level = Callable[[ArmFactors], str]
_LEVELS: Mapping[str, _Level] = {
    "selector": lambda arm: arm.protocol,
    "budget": lambda arm: arm.budget,
    "prompt": lambda arm: arm.prompt,
    "control": lambda arm: arm.control,
    "wording": lambda arm: arm.wording,
}


@dataclass(frozen=True, slots=True)
class PooledQuestion:
    """What a level of a factor does in place of another, as one mean over models of equal weight.

    `weights` are by model and by pair of arms: a model's effect is the weighted sum of their differences.
    """

    factor: str
    level: str
    versus: str
    settings: int
    weights: Mapping[str, Mapping[ArmPair, float]]

    @property
    def name(self) -> tuple[str, str, str]:
        """What is asked."""
        return self.factor, self.level, self.versus

    @property
    def words(self) -> str:
        """What is asked, in words."""
        return f"{self.factor} {self.level} against {self.versus}"


def pooled_questions(arms: Sequence[ArmFactors]) -> list[PooledQuestion]:
    """The questions that the models of a run answer: selection, budget, prompt and controls.

    Each selector is compared with `clinical`, the largest budget with the smallest (and the slope over three
    or more), each prompt with `standard`, no control with each. Simulated readers are no models. A question
    rests on the settings of the other factors that all its models share; without any it is not asked.
    """
    models = [arm for arm in arms if not arm.simulated]
    plain = [arm for arm in models if arm.control == "none"]
    questions = [
        _contrast(plain, "selector", _LEVELS["selector"], name, REFERENCES["selector"])
        for name in _levels(plain, _LEVELS["selector"], REFERENCES["selector"])
    ]
    questions += _of_budgets(plain)
    questions += [
        _contrast(plain, "prompt", _LEVELS["prompt"], name, REFERENCES["prompt"])
        for name in _levels(plain, _LEVELS["prompt"], REFERENCES["prompt"])
    ]
    questions += [
        _contrast(models, "control", _LEVELS["control"], REFERENCES["control"], name)
        for name in _levels(models, _LEVELS["control"], REFERENCES["control"])
    ]
    return [question for question in questions if question.weights]


def _levels(arms: Sequence[ArmFactors], level: _Level, reference: str) -> list[str]:
    return sorted({level(arm) for arm in arms} - {reference})


def _of_budgets(arms: Sequence[ArmFactors]) -> Iterator[PooledQuestion]:
    budgets = sorted({int(arm.budget) for arm in arms if arm.budget.isdecimal()})
    if len(budgets) < 2:
        return
    smallest = str(budgets[0])
    steps = [_contrast(arms, "budget", _LEVELS["budget"], str(budget), smallest) for budget in budgets[1:]]
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
    return tuple(level(arm) for name, level in _LEVELS.items() if name != factor)


def collapse_questions(headlines: Headlines, simulated: Collection[str]) -> list[PooledQuestion]:
    """Whether answers spread over fewer categories than the truth; none without a headline."""
    models = {
        model
        for model, protocols in headlines.items()
        if not {arm for arms in protocols.values() for arm in arms} <= set(simulated)
    }
    settings = max((len(headlines[model]) for model in models), default=0)
    weights = {model: {(model, TRUTH): 1.0} for model in sorted(models)}
    return [PooledQuestion(COLLAPSE, ANSWERS, TRUTH, settings, weights)] if models else []
