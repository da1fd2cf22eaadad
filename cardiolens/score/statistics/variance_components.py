"""Components of variance: what a right answer depends on, by a mixed logistic model (protocol 16.11)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, pi

import numpy as np

from cardiolens.score.statistics.factors import ArmFactors, factors_of
from cardiolens.score.statistics.items import Bools, Items
from cardiolens.score.statistics.rows import Row

ROWS = 40_000  # answers that are fitted: whole patients drawn at random up to so many
FEWEST_PATIENTS = 20
_FACTORS = ("model", "protocol", "budget", "prompt", "wording", "seed")
_RESIDUAL = pi**2 / 3  # variance of the logistic distribution: chance within an item
_REACH = 1.959963984540054
_STEPS = 500
_BEGIN = exp(-0.5)  # first posterior deviation of every parameter


@dataclass(frozen=True, slots=True)
class _Factor:
    name: str
    level: np.ndarray  # of each answer
    number: int


def components(items: Mapping[str, Items], arms: Sequence[ArmFactors], seed: int) -> list[Row]:
    """Standard deviations, on the logit scale, of exact answers between the levels of every factor.

    `items` are those of each arm, of which answers to tier 1 without control count; patient, subtask and item
    (one question about one patient) are random factors like whatever the run varied, all crossed. The fit is
    statsmodels' variational approximation with
    log-normal priors of the deviations (median 1, 95 % 0.14 to 7.1), so that a factor of two or three levels
    rests on its prior as much as on the data, and a deviation is never 0. An answer that two arms share by
    the same request counts once. `share` is of the variance with that of the logistic distribution. Empty
    with fewer than FEWEST_PATIENTS.
    """
    labels = {name: arm for name, arm in factors_of(arms).items() if arm.control == "none"}
    labels = {name: arm for name, arm in labels.items() if not arm.simulated} or labels
    drawn = _drawn(items, {name: arm for name, arm in labels.items() if name in items}, seed)
    if len({patient for some in drawn for patient in some.patient.tolist()}) < FEWEST_PATIENTS:
        return []
    chosen = Items.together(drawn)
    factors = _factors(chosen, labels)
    means, errors = _fitted((chosen.gold == chosen.parsed).astype(np.float64), factors)
    whole = sum(exp(2 * mean) for mean in means) + _RESIDUAL
    n_patients = len(np.unique(chosen.patient))
    rows: list[Row] = [
        {
            "component": factor.name,
            "levels": factor.number,
            "value": exp(mean),
            "low": exp(mean - _REACH * error),
            "high": exp(mean + _REACH * error),
            "share": 100 * exp(2 * mean) / whole,
            "n_items": len(chosen),
            "n_patients": n_patients,
            "method": "mixed logistic model, variational Bayes (statsmodels)",
        }
        for factor, mean, error in zip(factors, means, errors, strict=True)
    ]
    chance: Row = {"component": "within an item", "share": 100 * _RESIDUAL / whole, "n_items": len(chosen)}
    return [*rows, chance]


def _drawn(items: Mapping[str, Items], labels: Mapping[str, ArmFactors], seed: int) -> list[Items]:
    """The answers to whole patients, drawn until there are ROWS, but at least FEWEST_PATIENTS."""
    named = sorted(labels)
    models = sorted({arm.model for arm in labels.values()})
    first = _once(items, [[name for name in named if labels[name].model == model] for model in models])
    answered: Counter[int] = Counter()
    for name in named:
        answered.update(items[name].patient[first[name]].tolist())
    patients = np.random.default_rng(seed).permutation(np.array(sorted(answered), np.int64))
    ends = np.cumsum([answered[patient] for patient in patients.tolist()])
    number = max(int(np.searchsorted(ends, ROWS, side="right")), FEWEST_PATIENTS)
    chosen = (items[name].where(first[name]) for name in named)
    return [some.where(np.isin(some.patient, patients[:number])) for some in chosen]


def _once(items: Mapping[str, Items], models: Sequence[Sequence[str]]) -> dict[str, Bools]:
    """Flags of the answers of each arm to tier 1: of one that a model gave for several arms, the first."""
    flags = {}
    for arms in models:
        eligible = {arm: items[arm].judged & (items[arm].tier == 1) for arm in arms}
        asked = [items[arm].where(eligible[arm]) for arm in arms]
        keys = np.concatenate([np.stack([some.request, some.question]) for some in asked], axis=1)
        _, first = np.unique(keys, axis=1, return_index=True)
        counted = np.isin(np.arange(keys.shape[1]), first)
        ends = np.cumsum([len(some) for some in asked])[:-1]
        for arm, of_arm in zip(arms, np.split(counted, ends), strict=True):
            flags[arm] = eligible[arm].copy()
            flags[arm][eligible[arm]] = of_arm
    return flags


def _factors(items: Items, labels: dict[str, ArmFactors]) -> list[_Factor]:
    """Patient, subtask, item, and every factor of the arms that has two levels or more."""
    named: dict[str, Sequence[object]] = {
        "patient": items.patient.tolist(),
        "subtask": items.subtask.tolist(),
        "item": items.question.tolist(),
    }
    arms = [labels[arm] for arm in items.arm.tolist()]
    named |= {name: [_level(arm, name) for arm in arms] for name in _FACTORS}
    found = []
    protocols = len(set(named["protocol"]))
    for name, values in named.items():
        levels, at = np.unique(np.asarray(values, dtype=str), return_inverse=True)
        # without a second seed of any protocol, seeds and protocols are the same
        if len(levels) > (protocols if name == "seed" else 1):
            found.append(_Factor(name, at, len(levels)))
    return found


def _level(arm: ArmFactors, name: str) -> str:
    """A level of a factor; a seed is one of its protocol."""
    return arm.selector if name == "seed" else str(getattr(arm, name))


def _fitted(right: np.ndarray, factors: Sequence[_Factor]) -> tuple[list[float], list[float]]:
    """Posterior means and deviations of the logarithms of the factors' standard deviations."""
    import warnings

    from scipy import sparse
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    rows = np.arange(len(right))
    ones = np.ones(len(right))
    design = sparse.hstack(
        [sparse.csr_matrix((ones, (rows, one.level)), (len(right), one.number)) for one in factors]
    ).tocsr()
    owner = np.repeat(np.arange(len(factors)), [one.number for one in factors])
    model = BinomialBayesMixedGLM(right, ones[:, None], design, owner, vcp_p=1.0)
    with warnings.catch_warnings():
        # the last digits of the bound on the likelihood, which no printed figure shows
        warnings.filterwarnings("ignore", message="VB fitting did not converge")
        size = 1 + len(factors) + design.shape[1]
        begin = np.zeros(size), np.full(size, _BEGIN)  # without these it begins at random
        fit = model.fit_vb(*begin, fit_method="L-BFGS-B", minim_opts={"maxiter": _STEPS})
    return [float(value) for value in fit.vcp_mean], [float(value) for value in fit.vcp_sd]
