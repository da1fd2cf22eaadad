"""Factors of arms: pairs that differ in exactly one, arms behind headlines, and questions of a sweep."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from cardiolens.config.sweep_factors import HEADLINE, REFERENCES, Arm

FACTORS = ("model", "selector", "budget", "prompt", "control", "wording")
COLLAPSE, ANSWERS, TRUTH = "collapse", "answers", "truth"  # in place of a factor and its levels
_LEVELS = {  # attributes of arms by factor; seeds of a selection are no level of their own
    **{"selector": "protocol", "budget": "budget", "prompt": "prompt"},
    **{"control": "control", "wording": "wording"},
}


@dataclass(frozen=True, slots=True)
class ArmFactors:
    """The factor levels of one arm."""

    arm_id: str
    model: str
    selector: str  # with its seed, e.g. random@2026
    budget: str
    prompt: str
    control: str = "none"
    wording: str = "0"  # number of the questions' wording
    simulated: bool = False  # a simulated reader: it enters no test, rank or sentence about models
    shots: int = 0  # solved examples before each question; a part of what the prompt's name stands for
    cine: str = "frames"  # or video: how phases of a slice are shown; a part of the prompt's name, too

    @property
    def protocol(self) -> str:
        """The selection protocol without its seed."""
        return self.selector.partition("@")[0]


ArmPair = tuple[str, str]  # arm, versus arm: the difference is the first minus the second
Families = Mapping[str, Sequence[ArmPair]]  # pairs of arms by the factor in which they differ
Protocols = Mapping[str, Sequence[str]]  # arms by protocol, one for each seed
Headlines = Mapping[str, Protocols]  # by model


def arm_factors(sweep_arms: Sequence[Arm]) -> list[ArmFactors]:
    """Factors of every arm of a sweep."""
    return [
        ArmFactors(
            arm_id=arm.arm_id,
            model=arm.model.name,
            selector=arm.selector_name,
            budget=str(arm.budget),
            prompt=arm.prompt.name,
            control=arm.control,
            wording=str(arm.wording),
            simulated=arm.model.simulated,
            shots=arm.prompt.shots,
            cine=arm.prompt.cine,
        )
        for arm in sweep_arms
    ]


def families(arms: Sequence[ArmFactors]) -> dict[str, list[ArmPair]]:
    """Pairs of arms that differ in exactly one factor, by that factor.

    A difference reads other prompt minus standard, no control minus control, larger minus smaller budget,
    else by name.
    """
    pairs: dict[str, list[ArmPair]] = {}
    for factor in FACTORS:
        alike: dict[tuple[str, ...], list[ArmFactors]] = {}
        for arm in sorted(arms, key=lambda arm: arm.arm_id):
            rest = tuple(getattr(arm, name) for name in FACTORS if name != factor)
            alike.setdefault(rest, []).append(arm)
        for first, second in (pair for group in alike.values() for pair in combinations(group, 2)):
            if getattr(first, factor) != getattr(second, factor):
                versus, arm = sorted((first, second), key=lambda arm: _rank(arm, factor))
                pairs.setdefault(factor, []).append((arm.arm_id, versus.arm_id))
    return pairs


def _rank(arm: ArmFactors, factor: str) -> tuple[bool, float, str]:
    value = str(getattr(arm, factor))
    baseline = (factor == "prompt" and value == "standard") or (factor == "control" and value != "none")
    number = value.removeprefix("tokens:")
    return not baseline, float(number) if number.isdecimal() else 0.0, value


def control_pairs(arms: Sequence[ArmFactors], control: str) -> list[ArmPair]:
    """Pair each arm without control with the same arm under a control, sorted."""
    controlled = {
        replace(arm, arm_id="", control="none"): arm.arm_id for arm in arms if arm.control == control
    }
    uncontrolled = {arm.arm_id: replace(arm, arm_id="") for arm in arms if arm.control == "none"}
    return sorted((arm_id, controlled[arm]) for arm_id, arm in uncontrolled.items() if arm in controlled)


def headlines(arms: Sequence[ArmFactors]) -> Headlines:
    """Pick the arms behind each headline: K = 16, standard prompt, selectors that all models have.

    Simulated readers have no influence where there are models. Models with no common selector keep their
    own, and are not compared.
    """
    eligible = [arm for arm in arms if is_headline(arm)]
    ranking = [arm for arm in eligible if not arm.simulated] or eligible
    common = {arm.selector for arm in eligible}
    for model in {arm.model for arm in ranking}:
        common &= {arm.selector for arm in ranking if arm.model == model}
    arms_by_model: dict[str, dict[str, list[str]]] = {}
    for arm in sorted(eligible, key=lambda arm: (arm.model, arm.selector)):
        if not common or arm.selector in common:
            arms_by_model.setdefault(arm.model, {}).setdefault(arm.protocol, []).append(arm.arm_id)
    return arms_by_model


def arms_of(protocols: Protocols) -> list[str]:
    """The arms behind a headline."""
    return [arm for arms in protocols.values() for arm in arms]


def is_headline(arm: ArmFactors) -> bool:
    """Return whether an arm has the budget, prompt and control of a headline."""
    return all(getattr(arm, name) == value for name, value in HEADLINE.items())


def why_no_headline(arms: Sequence[ArmFactors]) -> str:
    """The arms that a headline needs, and the values to add to a sweep that has none of them."""
    settings = ", ".join(f"{name}={value}" for name, value in HEADLINE.items())
    additions = []
    for name, value in HEADLINE.items():
        levels = list(dict.fromkeys(getattr(arm, name) for arm in arms))
        if value not in levels:
            additions.append(f"{name}=[{','.join([*levels, value])}]")
    add = f" Run it again with {' '.join(additions)}." if additions else ""
    return f"A headline is of arms with {settings}; this run has none with an answer that was judged.{add}"


@dataclass(frozen=True, slots=True)
class PooledQuestion:
    """A question about what a level of a factor does in place of another, over models of equal weight.

    `weights` are by model and by pair of arms: a model's effect is the weighted sum of their differences. A
    weight is negative where the pair is compared in the other direction.
    """

    factor: str
    level: str
    versus: str
    settings: int
    weights: Mapping[str, Mapping[ArmPair, float]]


def pooled_questions(arms: Sequence[ArmFactors]) -> list[PooledQuestion]:
    """The questions that the models of a run answer: selection, budget, prompt and controls.

    Each selector is compared with `clinical`, the largest budget with the smallest, each prompt with
    `standard`, no control with each. Simulated readers are no models. A question rests on the settings of the
    other factors that all its models share; without any it is not asked.
    """
    models = [arm for arm in arms if not arm.simulated]
    plain = [arm for arm in models if arm.control == "none"]
    budgets = sorted({int(arm.budget) for arm in plain if arm.budget.isdecimal()})
    contrasts = [("selector", name, REFERENCES["selector"]) for name in _compared(plain, "selector")]
    contrasts += [("budget", str(budgets[-1]), str(budgets[0]))] if len(budgets) > 1 else []
    contrasts += [("prompt", name, REFERENCES["prompt"]) for name in _compared(plain, "prompt")]
    questions = [_contrast(plain, *contrast) for contrast in contrasts]
    none = REFERENCES["control"]
    questions += [_contrast(models, "control", none, name) for name in _compared(models, "control")]
    return [question for question in questions if question.weights]


def _level(arm: ArmFactors, factor: str) -> str:
    return str(getattr(arm, _LEVELS[factor]))


def _compared(arms: Sequence[ArmFactors], factor: str) -> list[str]:
    """The levels of a factor besides its reference."""
    return sorted({_level(arm, factor) for arm in arms} - {REFERENCES[factor]})


def _contrast(arms: Sequence[ArmFactors], factor: str, level: str, versus: str) -> PooledQuestion:
    """Pairs of arms of one model that differ in a factor alone, in the settings that all models share."""
    by_id = {arm.arm_id: arm for arm in arms}
    by_model: dict[str, dict[tuple[str, ...], dict[ArmPair, int]]] = {}
    for pair in families(arms).get(factor, ()):
        ours, theirs = (by_id[name] for name in pair)
        levels = _level(ours, factor), _level(theirs, factor)
        if {*levels} == {level, versus}:
            setting = tuple(_level(ours, name) for name in _LEVELS if name != factor)
            signs = by_model.setdefault(ours.model, {}).setdefault(setting, {})
            signs[pair] = 1 if levels[0] == level else -1
    shared = set[tuple[str, ...]]().union(*by_model.values()).intersection(*by_model.values())
    weights = {
        model: {
            pair: sign / len(shared) / len(signs[setting])
            for setting in sorted(shared)
            for pair, sign in signs[setting].items()
        }
        for model, signs in sorted(by_model.items())
        if shared
    }
    return PooledQuestion(factor, level, versus, len(shared), weights)


def collapse_questions(headlines: Headlines, simulated: Collection[str]) -> list[PooledQuestion]:
    """Whether answers spread over fewer categories than the truth; none without a headline."""
    models = [model for model, protocols in headlines.items() if not {*arms_of(protocols)} <= {*simulated}]
    settings = max((len(headlines[model]) for model in models), default=0)
    weights = {model: {(model, TRUTH): 1.0} for model in sorted(models)}
    return [PooledQuestion(COLLAPSE, ANSWERS, TRUTH, settings, weights)] if models else []
