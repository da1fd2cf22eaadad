"""Variance components of correctness by a mixed logistic model (protocol 16.11)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, pi

import numpy as np

from cardiolens.score.statistics.enough_data import FEWEST_FOR_CLAIM
from cardiolens.score.statistics.factors import ArmFactors, factors_of
from cardiolens.score.statistics.items import Bools, Items
from cardiolens.score.statistics.rows import Row

ROWS = 40_000  # at most so many answers are fitted: those of whole patients, sampled at random
_FACTORS = ("model", "protocol", "budget", "prompt", "wording", "seed")
_RESIDUAL = pi**2 / 3  # variance of the logistic distribution: chance within an item
_REACH = 1.959963984540054
_STEPS = 500
_START = exp(-0.5)  # first posterior deviation of every parameter


@dataclass(frozen=True, slots=True)
class _Factor:
    name: str
    level: np.ndarray  # of each answer
    number: int


def components(items: Mapping[str, Items], arms: Sequence[ArmFactors], seed: int) -> list[Row]:
    """Standard deviations, on the logit scale, of exact answers between the levels of every factor.

    `items` are those of each arm, of which answers to tier 1 without control count; patient, subtask and item
    (one question about one patient) are random factors like the factors of the run, all crossed. The fit is
    statsmodels' variational approximation with
    log-normal priors of the deviations (median 1, 95 % 0.14 to 7.1), so that a factor of two or three levels
    rests on its prior as much as on the data, and a deviation is never 0. An answer that two arms share by
    the same request counts once. `share` is of the variance with that of the logistic distribution. Empty
    with fewer than FEWEST_FOR_CLAIM.
    """
    labels = {name: arm for name, arm in factors_of(arms).items() if arm.control == "none"}
    labels = {name: arm for name, arm in labels.items() if not arm.simulated} or labels
    samples = _sample_patients(items, {name: arm for name, arm in labels.items() if name in items}, seed)
    if len({patient for sample in samples for patient in sample.patient.tolist()}) < FEWEST_FOR_CLAIM:
        return []
    sample_items = Items.together(samples)
    factors = _factors(sample_items, labels)
    means, errors = _fitted((sample_items.gold == sample_items.parsed).astype(np.float64), factors)
    total_variance = sum(exp(2 * mean) for mean in means) + _RESIDUAL
    n_patients = len(np.unique(sample_items.patient))
    rows: list[Row] = [
        {
            "component": factor.name,
            "levels": factor.number,
            "value": exp(mean),
            "low": exp(mean - _REACH * error),
            "high": exp(mean + _REACH * error),
            "share": 100 * exp(2 * mean) / total_variance,
            "n_items": len(sample_items),
            "n_patients": n_patients,
            "method": "mixed logistic model, variational Bayes (statsmodels)",
        }
        for factor, mean, error in zip(factors, means, errors, strict=True)
    ]
    chance: Row = {
        "component": "within an item",
        "share": 100 * _RESIDUAL / total_variance,
        "n_items": len(sample_items),
    }
    return [*rows, chance]


def _sample_patients(items: Mapping[str, Items], labels: Mapping[str, ArmFactors], seed: int) -> list[Items]:
    """Sample as many whole patients as fit into ROWS answers, but at least FEWEST_FOR_CLAIM."""
    arm_ids = sorted(labels)
    models = sorted({arm.model for arm in labels.values()})
    first = _first_answers(
        items, [[name for name in arm_ids if labels[name].model == model] for model in models]
    )
    n_answers: Counter[int] = Counter()
    for name in arm_ids:
        n_answers.update(items[name].patient[first[name]].tolist())
    patients = np.random.default_rng(seed).permutation(np.array(sorted(n_answers), np.int64))
    ends = np.cumsum([n_answers[patient] for patient in patients.tolist()])
    number = max(int(np.searchsorted(ends, ROWS, side="right")), FEWEST_FOR_CLAIM)
    first_answers = (items[name].where(first[name]) for name in arm_ids)
    return [answers.where(np.isin(answers.patient, patients[:number])) for answers in first_answers]


def _first_answers(items: Mapping[str, Items], models: Sequence[Sequence[str]]) -> dict[str, Bools]:
    """Flag tier-1 answers of each arm; an answer shared by several arms of a model is flagged once."""
    flags = {}
    for arms in models:
        eligible = {arm: items[arm].judged & (items[arm].tier == 1) for arm in arms}
        eligible_items = [items[arm].where(eligible[arm]) for arm in arms]
        keys = np.concatenate(
            [np.stack([answers.request, answers.question]) for answers in eligible_items], axis=1
        )
        _, first = np.unique(keys, axis=1, return_index=True)
        is_first = np.isin(np.arange(keys.shape[1]), first)
        ends = np.cumsum([len(answers) for answers in eligible_items])[:-1]
        for arm, of_arm in zip(arms, np.split(is_first, ends), strict=True):
            flags[arm] = eligible[arm].copy()
            flags[arm][eligible[arm]] = of_arm
    return flags


def _factors(items: Items, labels: dict[str, ArmFactors]) -> list[_Factor]:
    """Patient, subtask, item, and every arm factor with at least two levels."""
    values_by_factor: dict[str, Sequence[object]] = {
        "patient": items.patient.tolist(),
        "subtask": items.subtask.tolist(),
        "item": items.question.tolist(),
    }
    arms = [labels[arm] for arm in items.arm.tolist()]
    values_by_factor |= {name: [_level(arm, name) for arm in arms] for name in _FACTORS}
    factors = []
    protocols = len(set(values_by_factor["protocol"]))
    for name, values in values_by_factor.items():
        levels, at = np.unique(np.asarray(values, dtype=str), return_inverse=True)
        # without a second seed of any protocol, seeds and protocols are the same
        if len(levels) > (protocols if name == "seed" else 1):
            factors.append(_Factor(name, at, len(levels)))
    return factors


def _level(arm: ArmFactors, name: str) -> str:
    """The level of a factor; seeds are nested in protocols."""
    return arm.selector if name == "seed" else str(getattr(arm, name))


def _fitted(right: np.ndarray, factors: Sequence[_Factor]) -> tuple[list[float], list[float]]:
    """Posterior means and deviations of the logarithms of the factors' standard deviations."""
    import warnings

    from scipy import sparse
    from statsmodels.genmod.bayes_mixed_glm import BinomialBayesMixedGLM

    rows = np.arange(len(right))
    ones = np.ones(len(right))
    design = sparse.hstack(
        [sparse.csr_matrix((ones, (rows, factor.level)), (len(right), factor.number)) for factor in factors]
    ).tocsr()
    owner = np.repeat(np.arange(len(factors)), [factor.number for factor in factors])
    model = BinomialBayesMixedGLM(right, ones[:, None], design, owner, vcp_p=1.0)
    with warnings.catch_warnings():
        # the last digits of the bound on the likelihood, which no printed figure shows
        warnings.filterwarnings("ignore", message="VB fitting did not converge")
        size = 1 + len(factors) + design.shape[1]
        start = np.zeros(size), np.full(size, _START)  # without these it begins at random
        fit = model.fit_vb(*start, fit_method="L-BFGS-B", minim_opts={"maxiter": _STEPS})
    return [float(value) for value in fit.vcp_mean], [float(value) for value in fit.vcp_sd]
