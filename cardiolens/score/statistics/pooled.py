"""Comparisons pooled over models: one mean a question, its spread, and the models behind it (17.6, 17.13)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.arm_statistics import CORRECTED, EXACT
from cardiolens.score.statistics.bootstrap import Interval, resampled_variance
from cardiolens.score.statistics.comparisons import LEVEL, Row, comparison
from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.differences import PairComparison
from cardiolens.score.statistics.factors import ArmPair
from cardiolens.score.statistics.headlines import Headlines, model_means
from cardiolens.score.statistics.hypothesis_tests import adjusted, interval_p
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.metrics import CRITERION, D_PRIME, ENTROPY_DEFICIT, SEVERITY_SHIFT
from cardiolens.score.statistics.pooled_questions import COLLAPSE, DOUBLING, PooledQuestion
from cardiolens.score.statistics.read_in_both import ReadInBoth, total_of
from cardiolens.score.statistics.statistic import TIERS, Basis, Resampling, Statistic, interval_of, scale
from cardiolens.score.statistics.verdict_rows import COMPLETE

FAMILY = "questions over all models"
# of prompts, besides the score: whether answers are more cautious (17.9)
CONSERVATISM: tuple[Key, ...] = (
    *((CRITERION, TIERS[0]), (D_PRIME, TIERS[0]), (SEVERITY_SHIFT, TIERS[0])),
    *(("mean_cardinality", TIERS[0]), (CRITERION, TIERS[2]), (D_PRIME, TIERS[2])),
)
COLLAPSE_KEYS: tuple[Key, ...] = ((ENTROPY_DEFICIT, TIERS[0]), (ENTROPY_DEFICIT, TIERS[2]))
_FEWEST_MODELS = 3  # from two, a spread is hardly known


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference in the cohort and its resamples, as fractions, and what it rests on."""

    values: Floats
    basis: Basis
    low: float  # had the dropped items been wrong for our side and right for theirs
    high: float  # had they been the reverse
    n_dropped: int
    n_same: int  # items whose request is the same on both sides
    read: ReadInBoth
    weight: float = 1.0  # of the pairs that are in

    @staticmethod
    def of(values: Floats, basis: Basis) -> "Effect":
        """An effect without dropped items, identical requests or replies not read."""
        value = float(values[0])
        return Effect(values, basis, value, value, 0, 0, ReadInBoth(value, basis.n_items, 0, 0))

    def times(self, weight: float) -> "Effect":
        """This effect with a weight."""
        low, high = sorted((weight * self.low, weight * self.high))
        scaled = weight * self.values
        read = total_of([self.read if weight > 0 else self.read.reversed], [abs(weight)])
        return Effect(scaled, self.basis, low, high, self.n_dropped, self.n_same, read, abs(weight))


def total(effects: Sequence[Effect]) -> Effect:
    """The sum of effects; its basis counts all of their items."""
    return Effect(
        np.sum([effect.values for effect in effects], axis=0),
        joined([effect.basis for effect in effects]),
        sum(effect.low for effect in effects),
        sum(effect.high for effect in effects),
        sum(effect.n_dropped for effect in effects),
        sum(effect.n_same for effect in effects),
        total_of([effect.read for effect in effects], [1.0] * len(effects)),
        sum(effect.weight for effect in effects),
    )


def joined(bases: Sequence[Basis]) -> Basis:
    """The basis of a mean over pairs of arms: all items are counted, and it is worth those of one pair.

    Models share their patients and items, so a mean over them is known no better than one of them may be.
    """
    return Basis(
        n_items=sum(basis.n_items for basis in bases),
        n_patients=max(basis.n_patients for basis in bases),
        n_parse_error=sum(basis.n_parse_error for basis in bases),
        n_refusal=sum(basis.n_refusal for basis in bases),
        n_effective=min(basis.n_effective for basis in bases),
        effective_items=min(min(basis.effective_items, basis.n_entities or basis.n_items) for basis in bases),
        n_entities=sum(basis.n_entities for basis in bases),
        n_hospitals=bases[0].n_hospitals,
        hospital_inflation=max(basis.hospital_inflation for basis in bases),
    )


class PooledEffects:
    """Sums up differences of pairs of arms for the models and questions that they belong to."""

    def __init__(self, questions: Sequence[PooledQuestion]) -> None:
        self._uses: dict[ArmPair, list[tuple[PooledQuestion, str, float]]] = {}
        for question in questions:
            for model, weights in question.weights.items():
                for pair, weight in weights.items():
                    self._uses.setdefault(pair, []).append((question, model, weight))
        # by question, model, key, and whether it is over the items whose requests differ
        self._effects: dict[tuple[str, str, str, str, Key, bool], Effect] = {}

    @property
    def pairs(self) -> frozenset[ArmPair]:
        """The pairs of arms that are needed, in the direction of their question."""
        return frozenset(self._uses)

    def add(self, pair: PairComparison) -> None:
        """Add the differences of a pair to the effects that it is part of."""
        for arms, sign in (((pair.arm, pair.versus), 1), ((pair.versus, pair.arm), -1)):
            for question, model, weight in self._uses.get(arms, ()):
                for key, is_differing, effect in _effects(pair):
                    place = (*question.name, model, key, is_differing)
                    parts = [self._effects[place]] if place in self._effects else []
                    self._effects[place] = total([*parts, effect.times(sign * weight)])

    def put(self, question: PooledQuestion, model: str, key: Key, effect: Effect) -> None:
        """Set the effect of a model on a question that is no difference of two arms."""
        self._effects[(*question.name, model, key, False)] = effect

    def of(self, question: PooledQuestion, key: Key, *, differing: bool = False) -> dict[str, Effect]:
        """Effects by model, of those for which no pair is missing.

        Of items whose requests differ, over the pairs that have any.
        """
        effects = {}
        for model, weights in sorted(question.weights.items()):
            effect = self._effects.get((*question.name, model, key, differing))
            if effect is None:
                continue
            if differing:
                effects[model] = effect.times(1 / effect.weight)
            elif math.isclose(effect.weight, sum(map(abs, weights.values()))):
                effects[model] = effect
        return effects


def _effects(pair: PairComparison) -> Iterator[tuple[Key, bool, Effect]]:
    """The differences of a pair, on all common items and, of scores, on those whose requests differ."""
    rows = {(row["metric"], f"tier:{row['tier']}"): row for row in pair.rows}
    for key, difference in pair.differences.items():
        effect, row, unit = Effect.of(difference.values, difference.basis), rows.get(key), scale(key[0])
        if row is None:  # of how answers are given, where a question on the score alone is pooled
            continue
        if row.get("n_dropped"):
            low, high = row["low_bound"] / unit, row["high_bound"] / unit
            effect = replace(effect, low=low, high=high, n_dropped=row["n_dropped"])
        if row.get("n_read") is not None:
            counts = (row[name] for name in ("n_read", "n_unread", "n_unread_versus"))
            effect = replace(effect, read=ReadInBoth(row["read_difference"] / unit, *counts))
        yield key, False, replace(effect, n_same=row["n_same_request"])
        if key[0] == "primary" and row["n_same_request"] < difference.basis.n_items:
            differing = pair.differing.get(key, difference)
            plain = Effect.of(difference.values, difference.basis)
            yield key, True, replace(plain, values=differing.values, basis=differing.basis, read=effect.read)


def add_collapse(
    effects: PooledEffects,
    questions: Sequence[PooledQuestion],
    statistics: Mapping[str, Mapping[Key, Statistic]],
    headlines: Headlines,
) -> None:
    """Add the mean entropy deficit of each model over the arms of its headline, by tier."""
    for question in questions:
        for model in question.weights:
            means = model_means(statistics, headlines[model])
            for key in COLLAPSE_KEYS:
                if key in means:
                    effects.put(question, model, key, Effect.of(means[key].values, means[key].basis))


def pooled_rows(
    questions: Sequence[PooledQuestion], effects: PooledEffects, sampling: Resampling
) -> list[Row]:
    """Rows of every question on every tier: its mean over models with tests and spread, and each model's.

    The questions are one family of Holm for differences, one for equivalences, one for differences beyond the
    margin. The models behind a question are a family that is opened where the question's own test rejects.
    """
    answers = [
        _Pooled(question, key, effects.of(question, key), effects.of(question, key, differing=True))
        for question in questions
        for key in _keys(question)
    ]
    answers = [answer for answer in answers if answer.effects]
    rows = [answer.row(sampling) for answer in answers]
    tested = [row for row, answer in zip(rows, answers, strict=True) if answer.question.level != DOUBLING]
    for test in ("p", "within_p", "beyond_p"):
        of_test = [row for row in tested if test in row]
        for row, p in zip(of_test, adjusted([row[test] for row in of_test]), strict=True):
            row[f"{test}_adjusted"] = float(p)
    for row in tested:
        row |= {"family": FAMILY, "family_size": len(tested), "adjustment": "holm"}
    opened = sum(row["p_adjusted"] <= LEVEL for row in tested)
    of_models = [
        model_row
        for row, answer in zip(rows, answers, strict=True)
        if "family" in row
        for model_row in answer.model_rows(sampling, opened / len(tested) if _is_open(row) else 0.0)
    ]
    return [*rows, *of_models]


def _is_open(row: Row) -> bool:
    return bool(row["p_adjusted"] <= LEVEL)


def _keys(question: PooledQuestion) -> list[Key]:
    if question.factor == COLLAPSE:
        return list(COLLAPSE_KEYS)
    scores = [("primary", tier) for tier in TIERS]
    return [*scores, *(CONSERVATISM if question.factor == "prompt" else ())]


@dataclass(frozen=True, slots=True)
class _Pooled:
    """A question on a metric and tier: effects of its models, on all items and where requests differ."""

    question: PooledQuestion
    key: Key
    effects: Mapping[str, Effect]
    differing: Mapping[str, Effect]

    def row(self, sampling: Resampling) -> Row:
        """The mean over models, of equal weight."""
        effect = total([effect.times(1 / len(self.effects)) for effect in self.effects.values()])
        note = _note(len(self.effects), self.question.settings)
        row = self._names() | self._effect_row(effect, note, sampling)
        row |= {"n_models": len(self.effects), "n_settings": self.question.settings}
        row["n_same_request"] = effect.n_same
        if self.key[0] == "primary" and effect.n_same and self.differing:
            parts = total([part.times(1 / len(self.differing)) for part in self.differing.values()])
            interval = interval_of("primary", _statistic(parts, note), level=0.9)
            row |= {"differing_low_90": interval.low, "differing_high_90": interval.high}
        return row | self._spread(effect, note)

    def model_rows(self, sampling: Resampling, share: float) -> Iterator[Row]:
        """Effect of each model; Holm's p over the models, times 1 / share of the questions that rejected."""
        note = _note(1, self.question.settings)
        rows = [
            self._names()
            | {"model": model, "n_settings": self.question.settings}
            | self._effect_row(effect, note, sampling)
            for model, effect in self.effects.items()
        ]
        for row, p in zip(rows, adjusted([row["p"] for row in rows]), strict=True):
            for name in ("p", "within_p", "beyond_p", "low_90", "high_90"):  # tested over the models alone
                row.pop(name, None)
            if share:
                row |= {"p_adjusted": min(1.0, float(p) / share), "family_size": len(rows)}
                row |= {"family": f"models behind {self.question.words}", "adjustment": "holm"}
            yield row

    def _names(self) -> Row:
        question = self.question
        return {"factor": question.factor, "level": question.level, "versus": question.versus}

    def _effect_row(self, effect: Effect, note: str, sampling: Resampling) -> Row:
        metric, tier = self.key
        statistic = _statistic(effect, note)
        row = comparison(metric, tier, statistic, sampling.method)
        row["p"] = two_sided_p(effect.values, row, effect.basis.units)
        if effect.read.n_unread + effect.read.n_unread_versus:
            row |= effect.read.columns(metric)
        if effect.n_dropped:
            share = effect.n_dropped / (effect.n_dropped + effect.basis.n_items)
            row |= {"n_dropped": effect.n_dropped, "is_incomplete": share > 1 - COMPLETE}
            row |= {"low_bound": scale(metric) * effect.low, "high_bound": scale(metric) * effect.high}
        return row

    def _spread(self, effect: Effect, note: str) -> Row:
        """How many models go up, and how much they differ."""
        values = np.stack([of_model.values for of_model in self.effects.values()])
        row: Row = {"n_models_above": int((values[:, 0] > 0).sum())}
        spread = between_models(values, _statistic(effect, note).basis.inflation)
        if spread is not None and not effect.basis.without_interval:
            deviation, expected = spread
            unit = scale(self.key[0])
            row |= {"spread": unit * deviation.value, "spread_low": unit * deviation.low}
            row |= {"spread_high": unit * deviation.high}
            row |= {"next_low": unit * expected.low, "next_high": unit * expected.high}
        return row


def two_sided_p(values: Floats, row: Row, patients: float) -> float:
    """The larger p of the interval and of the standard error over the resamples.

    One end of an interval is one percentile of the resamples, whose error would reject too often far out in
    the tail, where a family of many questions decides.
    """
    from scipy import stats

    interval = Interval(row["difference"], row["low"], row["high"])
    of_interval = interval_p(interval, 0.0, int(patients))
    error = math.sqrt(resampled_variance(values, patients))
    if not error > 0 or math.isnan(of_interval):
        return of_interval
    return max(of_interval, 2 * float(stats.t.sf(abs(values[0]) / error, patients - 1)))


def _statistic(effect: Effect, note: str) -> Statistic:
    return Statistic(effect.values, replace(effect.basis, note=note), of_pairs=True)


def _note(models: int, settings: int) -> str:
    return f"mean over {counted(models, 'model')} in {counted(settings, 'setting')}"


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
    from scipy import stats

    number = len(effects)
    if number < _FEWEST_MODELS or np.isnan(effects[:, 0]).any():
        return None
    of_mean, of_one_model = errors(effects, inflation)
    if math.isnan(of_mean):
        return None
    squares = float(((effects[:, 0] - effects[:, 0].mean()) ** 2).sum())
    tail, freedom = (1 - level) / 2, number - 1
    low, high = (
        math.sqrt(max(squares / float(stats.chi2.isf(share, freedom)) - of_one_model, 0))
        for share in (tail, 1 - tail)
    )
    variance = max(squares / freedom - of_one_model, 0)
    mean = float(effects[:, 0].mean())
    reach = float(stats.t.isf(tail, freedom)) * math.sqrt(variance + of_mean + variance / number)
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
    """Mean change of accuracy over models between two tiers, from the headlines of each model (17.7).

    Models that share hard patients change alike without any difference between the tiers, so the variance is
    that of the mean over resamples of patients plus that of the models' true changes; their degrees of
    freedom are joined by Satterthwaite (1946). A change is claimed on corrected accuracy, and only where the
    share of exact answers changes the same way: neither readers that know as much in each tier and guess the
    rest, nor readers that are wrong as often in each tier, decline (16.4). Holm is over the pairs of tiers.
    """
    rows: list[Row] = []
    for earlier, later in combinations(TIERS, 2):
        pair = [_tier_change(means, metric, earlier, later, method) for metric in (CORRECTED, EXACT)]
        corrected, exact = pair
        if corrected is not None and exact is not None:
            same = np.sign(corrected["difference"]) == np.sign(exact["difference"])
            p_values = [row.pop("p") for row in (corrected, exact)]
            corrected["p"] = float(max(p_values)) if same and not np.isnan(p_values).any() else 1.0
        rows += [row for row in pair if row is not None]
    tested = [row for row in rows if row["metric"] == CORRECTED]
    for row, p in zip(tested, adjusted([row["p"] for row in tested]), strict=True):
        row |= {"p_adjusted": float(p), "family": "tiers", "family_size": len(tested), "adjustment": "holm"}
    return rows


def _tier_change(
    means: Mapping[str, Mapping[Key, Statistic]], metric: str, earlier: str, later: str, method: str
) -> Row | None:
    keys = (metric, earlier), (metric, later)
    sides = [(of[keys[0]], of[keys[1]]) for of in means.values() if {*keys} <= of.keys()]
    changes = [(after, after.values - before.values) for before, after in sides]
    changes = [change for change in changes if not math.isnan(change[1][0])]
    if len(changes) < 2:
        return None
    basis = joined([after.basis for after, _ in changes])
    values = np.stack([change for _, change in changes])
    note = f"mean over {len(changes)} models, patients and models random; {method}"
    row = comparison(metric, later, Statistic(values.mean(axis=0), basis, of_pairs=True), note)
    error, freedom = (math.nan, math.nan) if basis.without_interval else _error(values, basis)
    mean = float(values[:, 0].mean())
    reach, p = _t(mean, error, freedom)
    row |= {"difference": 100 * mean, "low": 100 * (mean - reach), "high": 100 * (mean + reach), "p": p}
    row |= {"factor": "tier", "level": later, "versus": earlier, "n_models": len(changes), "method": note}
    return row


def _error(values: Floats, basis: Basis) -> tuple[float, float]:
    """The standard error of the mean of (model, 1 + resamples), and its degrees of freedom."""
    number = len(values)
    of_patients, of_one_model = errors(values, basis.inflation)
    of_models = max(float(values[:, 0].var(ddof=1)) - of_one_model, 0.0) / number
    variance = of_patients + of_models
    if not variance > 0:
        return math.nan, math.nan
    parts = of_patients**2 / max(int(basis.units) - 1, 1) + of_models**2 / (number - 1)
    return math.sqrt(variance), variance**2 / parts


def _t(mean: float, error: float, freedom: float) -> tuple[float, float]:
    """Half the width of the 95 % interval, and the two-sided p."""
    from scipy import stats

    if math.isnan(error):
        return math.nan, math.nan
    return error * float(stats.t.isf(0.025, freedom)), 2 * float(stats.t.sf(abs(mean) / error, freedom))
