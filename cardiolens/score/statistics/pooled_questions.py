"""The questions of a sweep, each pooled over its models, and the pairs of arms behind them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from cardiolens.config.sweep_factors import REFERENCES
from cardiolens.score.statistics.factors import ArmFactors, ArmPair, Headlines, arms_of

COLLAPSE, ANSWERS, TRUTH = "collapse", "answers", "truth"  # in place of a factor and its levels
_LEVELS = {  # attributes of arms by factor; seeds of a selection are no level of their own
    **{"selector": "protocol", "budget": "budget", "prompt": "prompt"},
    **{"control": "control", "wording": "wording"},
}
_Setting = tuple[str, ...]  # levels of the other factors


@dataclass(frozen=True, slots=True)
class PooledQuestion:
    """A question about what a level of a factor does in place of another, over models of equal weight.

    `weights` are by model and by pair of arms: a model's effect is the weighted sum of their differences.
    """

    factor: str
    level: str
    versus: str
    settings: int
    weights: Mapping[str, Mapping[ArmPair, float]]

    @property
    def name(self) -> tuple[str, str, str]:
        """The factor and its two levels."""
        return self.factor, self.level, self.versus

    @property
    def words(self) -> str:
        """The question in words."""
        return f"{self.factor} {self.level} against {self.versus}"


def pooled_questions(arms: Sequence[ArmFactors]) -> list[PooledQuestion]:
    """The questions that the models of a run answer: selection, budget, prompt and controls.

    Each selector is compared with `clinical`, the largest budget with the smallest, each prompt with
    `standard`, no control with each. Simulated readers are no models. A question rests on the settings of the
    other factors that all its models share; without any it is not asked.
    """
    models = [arm for arm in arms if not arm.simulated]
    plain = [arm for arm in models if arm.control == "none"]
    budgets = sorted({int(arm.budget) for arm in plain if arm.budget.isdecimal()})
    none = REFERENCES["control"]
    questions = [
        *(
            _contrast(plain, "selector", name, REFERENCES["selector"])
            for name in _compared(plain, "selector")
        ),
        *([_contrast(plain, "budget", str(budgets[-1]), str(budgets[0]))] if len(budgets) > 1 else []),
        *(_contrast(plain, "prompt", name, REFERENCES["prompt"]) for name in _compared(plain, "prompt")),
        *(_contrast(models, "control", none, name) for name in _compared(models, "control")),
    ]
    return [question for question in questions if question.weights]


def _level(arm: ArmFactors, factor: str) -> str:
    return str(getattr(arm, _LEVELS[factor]))


def _compared(arms: Sequence[ArmFactors], factor: str) -> list[str]:
    """The levels of a factor besides its reference."""
    return sorted({_level(arm, factor) for arm in arms} - {REFERENCES[factor]})


def _contrast(arms: Sequence[ArmFactors], factor: str, level: str, versus: str) -> PooledQuestion:
    """Pairs of arms of one model that differ in a factor alone, in the settings that all models share."""
    by_model: dict[str, dict[_Setting, list[ArmPair]]] = {}
    for model in sorted({arm.model for arm in arms}):
        pairs = _pairs([arm for arm in arms if arm.model == model], factor, level, versus)
        by_model |= {model: pairs} if pairs else {}
    shared = set[_Setting]().union(*by_model.values()).intersection(*by_model.values())
    weights = {
        model: {
            pair: 1 / len(shared) / len(pairs[setting])
            for setting in sorted(shared)
            for pair in pairs[setting]
        }
        for model, pairs in by_model.items()
        if shared
    }
    return PooledQuestion(factor, level, versus, len(shared), weights)


def _pairs(arms: Sequence[ArmFactors], factor: str, level: str, versus: str) -> dict[_Setting, list[ArmPair]]:
    """Pairs of arms by setting; arms of one selector are paired seed by seed."""
    sides: dict[tuple[str, _Setting, str], list[str]] = {}
    for arm in arms:
        setting = tuple(_level(arm, name) for name in _LEVELS if name != factor)
        seed = "" if factor == "selector" else arm.selector
        sides.setdefault((_level(arm, factor), setting, seed), []).append(arm.arm_id)
    pairs: dict[_Setting, list[ArmPair]] = {}
    for of_level, setting, seed in sorted(sides):
        against = sides.get((versus, setting, seed))
        if of_level == level and against:
            ours = sides[level, setting, seed]
            pairs.setdefault(setting, []).extend(product(sorted(ours), sorted(against)))
    return pairs


def collapse_questions(headlines: Headlines, simulated: Collection[str]) -> list[PooledQuestion]:
    """Whether answers spread over fewer categories than the truth; none without a headline."""
    models = [model for model, protocols in headlines.items() if not {*arms_of(protocols)} <= {*simulated}]
    settings = max((len(headlines[model]) for model in models), default=0)
    weights = {model: {(model, TRUTH): 1.0} for model in sorted(models)}
    return [PooledQuestion(COLLAPSE, ANSWERS, TRUTH, settings, weights)] if models else []
