"""Comparisons pooled over models: one mean a question, its spread, and the models behind it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy  # whose parts are loaded when they are used: `stats` takes half a second

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.arm_statistics import CORRECTED, EXACT
from cardiolens.score.statistics.bootstrap import Basis, Interval, joint_freedom, resampled_variance
from cardiolens.score.statistics.comparisons import LEVEL, Effect, adjust, comparison, joined, mean, total
from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.factors import (
    COLLAPSE,
    ArmFactors,
    ArmPair,
    PooledQuestion,
    collapse_questions,
    headlines,
    pooled_questions,
)
from cardiolens.score.statistics.hypothesis_tests import (
    LARGEST,
    detectable_difference,
    difference_words,
    planned_error,
    row_p,
)
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, ENTROPY_DEFICIT, SEVERITY_SHIFT
from cardiolens.score.statistics.pairs import EffectKey
from cardiolens.score.statistics.statistic import TIERS, Resampling, Row, Statistic, scale

FAMILY = "questions over all models"
# of prompts, besides the score: whether answers are more cautious
CONSERVATISM: tuple[Key, ...] = (
    *((CRITERION, TIERS[0]), (D_PRIME, TIERS[0]), (SEVERITY_SHIFT, TIERS[0])),
    *(("mean_cardinality", TIERS[0]), (CRITERION, TIERS[2]), (D_PRIME, TIERS[2])),
)
COLLAPSE_KEYS: tuple[Key, ...] = ((ENTROPY_DEFICIT, TIERS[0]), (ENTROPY_DEFICIT, TIERS[2]))
_FEWEST_MODELS = 3  # from two, a spread is hardly known
PairEffects = Mapping[ArmPair, Mapping[EffectKey, Effect]]
ModelEffects = Mapping[EffectKey, Mapping[str, Effect]]
ASSUMED = (
    "assumed: half of the answers right, answers of two arms to an item correlated by 0.3, differences of "
    "two items of a patient by 0.1"
)


def effects_of(question: PooledQuestion, effects: PairEffects) -> dict[EffectKey, dict[str, Effect]]:
    """Effects of a question by key and model, from those of pairs of arms.

    Over all items they are the weighted sums of pairs, of models for which none is missing; over the items
    with differing requests the means of the pairs that have any.
    """
    found: dict[EffectKey, dict[str, Effect]] = {}
    for model, weights in sorted(question.weights.items()):
        parts: dict[EffectKey, list[tuple[float, Effect]]] = {}
        for pair, weight in weights.items():
            for key, effect in effects.get(pair, {}).items():
                parts.setdefault(key, []).append((weight, effect))
        for key, of_key in parts.items():
            whole = sum(abs(share) for share, _ in of_key) if key[1] else 1.0
            if key[1] or len(of_key) == len(weights):
                found.setdefault(key, {})[model] = total(
                    [effect.times(share / whole) for share, effect in of_key]
                )
    return found


def pooled_rows(questions: Sequence[PooledQuestion], effects: PairEffects, sampling: Resampling) -> list[Row]:
    """Rows of every question on every tier: its mean over models with tests and spread, and each model's.

    The questions are one family of Holm for differences, one for equivalences, one for differences beyond the
    margin. The models behind a question are a family that is opened where the question's own test rejects,
    with p over the models divided by the share of the questions that reject.
    """
    found = [(question, effects_of(question, effects)) for question in questions]
    asked = [(question, key, of) for question, of in found for key in _keys(question) if (key, False) in of]
    rows = [_mean_row(question, key, of, sampling.method) for question, key, of in asked]
    adjust(rows)
    rejects = [row["p_adjusted"] <= LEVEL for row in rows]
    for (question, key, of), is_rejected in zip(asked, rejects, strict=True):
        share = sum(rejects) / len(rejects) if is_rejected else 0.0
        rows += _model_rows(question, key, of[key, False], sampling.method, share)
    return rows


def _keys(question: PooledQuestion) -> list[Key]:
    if question.factor == COLLAPSE:
        return list(COLLAPSE_KEYS)
    scores = [("primary", tier) for tier in TIERS]
    return [*scores, *(CONSERVATISM if question.factor == "prompt" else ())]


def _mean_row(question: PooledQuestion, key: Key, effects: ModelEffects, method: str) -> Row:
    """The mean over models, of equal weight, with how many of them go up and how much they differ."""
    models, differing = effects[key, False], effects.get((key, True))
    effect = mean([*models.values()])
    row, basis = _row(question, key, effect, method, len(models)), effect.statistic.basis
    row |= {"n_models": len(models), "family": FAMILY, "adjustment": "holm"}
    if key[0] == "primary" and effect.n_same and differing:
        interval = mean([*differing.values()]).statistic.interval("primary", level=0.9)
        row |= {"differing_low_90": interval.low, "differing_high_90": interval.high}
    values = np.stack([of_model.statistic.values for of_model in models.values()])
    row["n_models_above"] = int((values[:, 0] > 0).sum())
    spread = between_models(values, basis.inflation)
    if spread is not None and not basis.without_interval:
        deviation, expected = spread
        ends = {"spread": deviation.value, "spread_low": deviation.low, "spread_high": deviation.high}
        ends |= {"next_low": expected.low, "next_high": expected.high}
        row |= {name: scale(key[0]) * value for name, value in ends.items()}
    return row


def _model_rows(
    question: PooledQuestion, key: Key, effects: Mapping[str, Effect], method: str, share: float
) -> list[Row]:
    """Effect of each model; Holm's p over the models, times 1 / share of the questions that rejected."""
    words = f"{question.factor} {question.level} against {question.versus}"
    family = {"family": f"models behind {words}", "adjustment": "holm"} if share else {}
    rows = [
        _row(question, key, effect, method, 1, against_margin=False) | {"model": model} | family
        for model, effect in effects.items()
    ]
    adjust(rows)
    for row in rows:  # tested over the models alone
        row.pop("p")
        if share:
            row["p_adjusted"] = min(1.0, row["p_adjusted"] / share)
    return rows


def _row(
    question: PooledQuestion,
    key: Key,
    effect: Effect,
    method: str,
    models: int,
    *,
    against_margin: bool = True,
) -> Row:
    statistic = effect.statistic
    note = f"mean over {counted(models, 'model')} in {counted(question.settings, 'setting')}"
    with_note = replace(statistic, basis=replace(statistic.basis, note=note))
    row = effect._replace(statistic=with_note).row(key, method, against_margin=against_margin)
    names = {"factor": question.factor, "level": question.level, "versus": question.versus}
    p = two_sided_p(statistic.values, row, statistic.basis.units)
    return names | row | {"p": p, "n_settings": question.settings}


def two_sided_p(values: Floats, row: Row, patients: float) -> float:
    """The larger p of the interval and of the standard error over the resamples.

    One end of an interval is one percentile of the resamples. Its error would reject too often far out in
    the tail, where a family of many questions decides.
    """
    of_interval = row_p(row, patients)
    error = math.sqrt(resampled_variance(values, patients))
    if not error > 0 or math.isnan(of_interval):
        return of_interval
    return max(of_interval, 2 * float(scipy.stats.t.sf(abs(values[0]) / error, patients - 1)))


def between_models(
    effects: Floats, inflation: float, level: float = 0.95
) -> tuple[Interval, Interval] | None:
    """Spread over models of effects (model, 1 + resamples), all from the same resamples of patients.

    The standard deviation of models' true effects, and the effect expected of a next model. The spread of the
    estimates is that of the true effects plus the errors that models do not share: mean variance minus mean
    covariance over the resamples. The interval is the Q-profile (Viechtbauer, Stat Med 2007;26:37-52) with
    that error for every model; the prediction interval is that of Higgins et al. (JRSS A 2009;172:137-159)
    with n - 1 degrees of freedom. None for fewer than three models.
    """
    number = len(effects)
    if number < _FEWEST_MODELS or np.isnan(effects[:, 0]).any():
        return None
    of_mean, of_one_model = errors(effects, inflation)
    if not math.isfinite(of_mean):
        return None
    squares = float(((effects[:, 0] - effects[:, 0].mean()) ** 2).sum())
    tail, freedom = (1 - level) / 2, number - 1
    low, high = (
        math.sqrt(max(squares / float(scipy.stats.chi2.isf(share, freedom)) - of_one_model, 0))
        for share in (tail, 1 - tail)
    )
    variance = max(squares / freedom - of_one_model, 0)
    mean = float(effects[:, 0].mean())
    reach = float(scipy.stats.t.isf(tail, freedom)) * math.sqrt(variance + of_mean + variance / number)
    return Interval(math.sqrt(variance), low, high), Interval(mean, mean - reach, mean + reach)


def errors(effects: Floats, inflation: float) -> tuple[float, float]:
    """Variance of the mean over two or more models, and that of one model beyond what all share.

    Both come from patients or hospitals, and are larger by `inflation` than over the resamples. NaN where no
    two resamples are defined for all models.
    """
    number = len(effects)
    resampled = effects[:, 1:][:, ~np.isnan(effects[:, 1:]).any(axis=0)]
    if resampled.shape[1] < 2:
        return math.nan, math.nan
    covariance = np.cov(resampled) * inflation
    shared = (covariance.sum() - np.trace(covariance)) / (number * (number - 1))
    of_one_model = max(float(np.trace(covariance) / number - shared), 0.0)
    return float(covariance.sum()) / number**2, of_one_model


def tier_change_rows(means: Mapping[str, Mapping[Key, Statistic]], method: str) -> list[Row]:
    """Mean change of accuracy over models between two tiers, from the headlines of each model.

    Models that share hard patients change alike without any difference between the tiers, so the variance is
    that of the mean over resamples of patients plus that of the models' true changes; their degrees of
    freedom are joined by Satterthwaite (1946). A change is claimed on corrected accuracy, and only where the
    share of exact answers changes the same way: neither readers that know as much in each tier and guess the
    rest, nor readers that are wrong as often in each tier, decline. Holm is over the pairs of tiers.
    """
    rows: list[Row] = []
    for earlier, later in combinations(TIERS, 2):
        changes = [_tier_change(means, metric, earlier, later, method) for metric in (CORRECTED, EXACT)]
        pair = [row for row in changes if row is not None]
        p_values = [row.pop("p") for row in pair]
        if len(pair) == 2:
            agrees = np.sign(pair[0]["difference"]) == np.sign(pair[1]["difference"])
            p = float(max(p_values)) if agrees and not np.isnan(p_values).any() else 1.0
            pair[0] |= {"p": p, "family": "tiers", "adjustment": "holm"}
        rows += pair
    return rows


def _tier_change(
    means: Mapping[str, Mapping[Key, Statistic]], metric: str, earlier: str, later: str, method: str
) -> Row | None:
    keys = (metric, earlier), (metric, later)
    sides = [[of_model[key] for key in keys] for of_model in means.values() if {*keys} <= of_model.keys()]
    changes = []
    for before, after in sides:
        n_patients = min(before.basis.n_patients, after.basis.n_patients)
        changes.append((after.values - before.values, replace(after.basis, n_patients=n_patients)))
    changes = [(values, basis) for values, basis in changes if not math.isnan(values[0])]
    if len(changes) < 2:
        return None
    values, basis = np.stack([values for values, _ in changes]), joined([basis for _, basis in changes])
    note = f"mean over {len(changes)} models, patients and models random; {method}"
    row = comparison((metric, later), Statistic(values.mean(axis=0), basis, of_pairs=True), note)
    change, (reach, p) = float(values[:, 0].mean()), _change_test(values, basis)
    row |= {"difference": 100 * change, "low": 100 * (change - reach), "high": 100 * (change + reach), "p": p}
    row |= {"factor": "tier", "level": later, "versus": earlier, "n_models": len(changes), "method": note}
    return row


def _change_test(values: Floats, basis: Basis) -> tuple[float, float]:
    """Half the width of the 95 % interval of the mean of (model, 1 + resamples), and its two-sided p."""
    number = len(values)
    of_patients, of_one_model = errors(values, basis.inflation)
    of_models = max(float(values[:, 0].var(ddof=1)) - of_one_model, 0.0) / number
    variance = of_patients + of_models
    if basis.without_interval or not 0 < variance < math.inf:
        return math.nan, math.nan
    freedoms = np.array([max(int(basis.units) - 1, 1), number - 1])
    error, freedom = math.sqrt(variance), joint_freedom(np.array([of_patients, of_models]), freedoms)
    t = abs(float(values[:, 0].mean())) / error
    return error * float(scipy.stats.t.isf(0.025, freedom)), 2 * float(scipy.stats.t.sf(t, freedom))


def power_lines(questions: pa.Table, arms: Sequence[ArmFactors]) -> list[str]:
    """One line per tier: the difference of two arms detectable with 80 % power, alone and after Holm.

    `questions` are those of each arm. A tier score is a mean over subtasks; items are assumed to have
    equal weight, and reports count as items, so that tiers 2 and 3 are rougher than tier 1.
    """
    lines = []
    tiers = sorted(pc.unique(questions["tier"]).to_pylist())
    number = number_of_questions(arms, tiers)
    for tier in tiers:
        of_tier = questions.filter(pc.equal(questions["tier"], tier))
        patients = len(pc.unique(of_tier["patient_id"]))
        error = planned_error(patients, of_tier.num_rows / patients)
        basis = f"{counted(patients, 'patient')}, {counted(of_tier.num_rows, 'item')}"
        alone, among = (detectable_difference(error, tests) for tests in (1, number))
        line = f"tier {tier}: {basis} detect {difference_words(alone)} with 80 % power"
        if number > 1 and alone <= LARGEST:
            line += f", {difference_words(among)} among the {number} questions of this run"
        lines.append(line)
    return lines


def number_of_questions(arms: Sequence[ArmFactors], tiers: Sequence[int]) -> int:
    """Size of the family of pooled questions: each on every tier, for prompts also caution, and collapse."""
    simulated = {arm.arm_id for arm in arms if arm.simulated}
    questions = [*pooled_questions(arms), *collapse_questions(headlines(arms), simulated)]
    scopes = [f"tier:{tier}" for tier in tiers]
    return sum(scope in scopes for question in questions for _, scope in _keys(question))
