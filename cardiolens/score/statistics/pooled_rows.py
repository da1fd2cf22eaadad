"""Score rows of questions pooled over models, their tests, and the models behind them (protocol 17.6)."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiolens.base.phrasing import counted
from cardiolens.score.statistics.between_models import between_models
from cardiolens.score.statistics.bootstrap import Interval
from cardiolens.score.statistics.differences import DIFFERING
from cardiolens.score.statistics.hypothesis_tests import holm, interval_p
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.multiple_testing import (
    BEYOND_P,
    EQUIVALENCE_P,
    HOLM_P,
    INTERVAL_P,
    adjusted_name,
)
from cardiolens.score.statistics.near_boundary import resampled_variance
from cardiolens.score.statistics.outcomes import COMPLETE, INCOMPLETE
from cardiolens.score.statistics.pair_tests import margin_rows
from cardiolens.score.statistics.pooled_effects import Effect, PooledEffects, total
from cardiolens.score.statistics.pooled_questions import COLLAPSE, COLLAPSE_KEYS, DOUBLING, PooledQuestion
from cardiolens.score.statistics.read_in_both import READ_IN_BOTH
from cardiolens.score.statistics.resampling import Resampling
from cardiolens.score.statistics.rows import TIERS, as_row, scale
from cardiolens.score.statistics.signal_detection import CRITERION, D_PRIME, SEVERITY_SHIFT
from cardiolens.score.statistics.statistic import Key, Statistic

# after the metric: the spread of an effect over models
DEVIATION, NEXT_MODEL, MODELS_ABOVE = "between_models", "next_model", "models_above"
# of prompts, besides the score: whether answers are more cautious (17.9)
CONSERVATISM = (
    *((CRITERION, TIERS[0]), (D_PRIME, TIERS[0]), (SEVERITY_SHIFT, TIERS[0])),
    *(("mean_cardinality", TIERS[0]), (CRITERION, TIERS[2]), (D_PRIME, TIERS[2])),
)
_LEVEL = 0.05

_Row = dict[str, object]


def pooled_rows(
    questions: Sequence[PooledQuestion], effects: PooledEffects, sampling: Resampling
) -> list[_Row]:
    """Rows of every question on every tier: its mean over models, tests, spread, and each model's effect.

    The questions are one family of Holm for differences, one for equivalences, one for differences beyond the
    margin. The models behind a question are a family that is opened where the question's own test rejects.
    """
    answers = [
        _QuestionOnTier(question, key, effects.of(question, key), effects.of(question, (DIFFERING, key[1])))
        for question in questions
        for key in _keys(question)
    ]
    answers = [answer for answer in answers if answer.effects]
    of_questions = [answer.rows(sampling) for answer in answers]
    is_tested = [answer.question.ours != DOUBLING for answer in answers]
    adjusted = [*_adjusted([rows for rows, tested in zip(of_questions, is_tested, strict=True) if tested])]
    opened = {_place(row) for row in adjusted if float(str(row["value"])) <= _LEVEL}
    places = [(*answer.sides, answer.tier, f"{answer.metric}.{HOLM_P}") for answer in answers]
    share = len(opened.intersection(places)) / max(sum(is_tested), 1)
    of_models = [
        row
        for answer, place, tested in zip(answers, places, is_tested, strict=True)
        if tested
        for row in answer.model_rows(sampling, share if place in opened else 0.0)
    ]
    return [*(row for rows in of_questions for row in rows), *adjusted, *of_models]


def _keys(question: PooledQuestion) -> list[Key]:
    if question.factor == COLLAPSE:
        return list(COLLAPSE_KEYS)
    scores = [("primary", tier) for tier in TIERS]
    return [*scores, *(CONSERVATISM if question.factor == "prompt" else ())]


def _place(row: Mapping[str, object]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in ("arm_id", "versus_arm_id", "scope", "metric"))


@dataclass(frozen=True, slots=True)
class _QuestionOnTier:
    """A question on a metric and tier: effects of its models, on all items and where requests differ."""

    question: PooledQuestion
    key: Key
    effects: Mapping[str, Effect]
    differing: Mapping[str, Effect]

    @property
    def metric(self) -> str:
        return self.key[0]

    @property
    def tier(self) -> str:
        return self.key[1]

    @property
    def sides(self) -> tuple[str, str]:
        return self.question.arm_id, self.question.versus_arm_id

    def rows(self, sampling: Resampling) -> list[_Row]:
        effect = total([effect.times(1 / len(self.effects)) for effect in self.effects.values()])
        note = _note(len(self.effects), self.question.settings)
        rows = _effect_rows(effect, self.key, note, sampling)
        if self.metric == "primary" and effect.n_same and self.differing:
            parts = [part.times(1 / len(self.differing)) for part in self.differing.values()]
            method = f"items whose requests differ; {sampling.method}"
            rows.append(as_row((DIFFERING, self.tier), _statistic(total(parts), note), method, level=0.9))
        rows += self._spread(effect, note, sampling)
        names = {"arm_id": self.question.arm_id, "versus_arm_id": self.question.versus_arm_id}
        return [names | {"n_same_request": effect.n_same} | row for row in rows]

    def model_rows(self, sampling: Resampling, share: float) -> Iterator[_Row]:
        """Effect of each model; Holm's p over the models, times 1 / share of the questions that rejected."""
        note, metric = _note(1, self.question.settings), self.metric
        all_rows = {
            model: {str(row["metric"]): row for row in _effect_rows(effect, self.key, note, sampling)}
            for model, effect in self.effects.items()
        }
        p_values = holm([float(str(rows[f"{metric}.{INTERVAL_P}"]["value"])) for rows in all_rows.values()])
        for (model, rows), p in zip(all_rows.items(), p_values, strict=True):
            sides = [f"{side}:{model}" for side in self.sides]
            names = dict(zip(("arm_id", "versus_arm_id"), sides, strict=True))
            kept = (metric, f"{metric}.bounds", f"{metric}.{READ_IN_BOTH}")
            yield from (names | rows[name] for name in kept if name in rows)
            if share:
                row = rows[f"{metric}.{INTERVAL_P}"]
                how = f"Holm over {len(p_values)} models, times {1 / share:.3g} (17.6); {row['method']}"
                adjusted = {"metric": f"{metric}.{HOLM_P}", "value": min(1.0, p / share), "method": how}
                yield names | row | adjusted

    def _spread(self, effect: Effect, note: str, sampling: Resampling) -> Iterator[_Row]:
        """How many models go up, and how much they differ."""
        values = np.stack([of_model.values for of_model in self.effects.values()])
        above = as_row(self.key, _statistic(effect, note), sampling.method)
        count = {"metric": f"{self.metric}.{MODELS_ABOVE}", "value": float((values[:, 0] > 0).sum())}
        yield above | count | {"low": np.nan, "high": np.nan}
        spread = between_models(values, _statistic(effect, note).basis.inflation)
        if spread is not None and not effect.basis.without_interval:
            for name, interval in ((DEVIATION, spread.deviation), (NEXT_MODEL, spread.next_model)):
                ends = {"value": interval.value, "low": interval.low, "high": interval.high}
                ends = {end: scale(self.metric) * value for end, value in ends.items()}
                yield above | {"metric": f"{self.metric}.{name}"} | ends


def _effect_rows(effect: Effect, key: Key, note: str, sampling: Resampling) -> list[_Row]:
    metric, tier = key
    statistic = _statistic(effect, note)
    whole = as_row(key, statistic, sampling.method)
    p = Statistic(np.array([two_sided_p(effect.values, whole, _patients(effect))]), statistic.basis)
    rows = [whole, as_row((f"{metric}.{INTERVAL_P}", tier), p, sampling.method)]
    rows += margin_rows(tier, statistic, sampling) if metric == "primary" else []
    if effect.read.n_unread + effect.read.n_unread_theirs:
        rows.append(whole | effect.read.row(key))
    if not effect.n_dropped:
        return rows
    share = effect.n_dropped / (effect.n_dropped + effect.basis.n_items)
    words = f"{counted(effect.n_dropped, 'item')} fell out or were not read"
    words = f"{INCOMPLETE}, {words}" if share > 1 - COMPLETE else words
    bounds = {"metric": f"{metric}.bounds", "n_items": effect.n_dropped, "method": words}
    bounds |= {"low": scale(metric) * effect.low, "high": scale(metric) * effect.high}
    return [*({**row, "method": f"{words}; {row['method']}"} for row in rows), whole | bounds]


def two_sided_p(values: Floats, row: Mapping[str, object], patients: float) -> float:
    """The larger p of the interval and of the standard error over the resamples.

    One end of an interval is one percentile of the resamples, whose error would reject too often far out in
    the tail, where a family of many questions decides.
    """
    from scipy import stats

    value, low, high = (float(str(row[name])) for name in ("value", "low", "high"))
    of_interval = interval_p(Interval(value, low, high), 0.0, int(patients))
    error = math.sqrt(resampled_variance(values, patients))
    if not error > 0 or math.isnan(of_interval):
        return of_interval
    return max(of_interval, 2 * float(stats.t.sf(abs(values[0]) / error, patients - 1)))


def _patients(effect: Effect) -> float:
    return effect.basis.units


def _statistic(effect: Effect, note: str) -> Statistic:
    return Statistic(effect.values, replace(effect.basis, note=note), of_pairs=True)


def _note(models: int, settings: int) -> str:
    counts = ((models, "model"), (settings, "setting"))
    return "mean over " + " in ".join(counted(count, name) for count, name in counts)


def _adjusted(rows_of: Sequence[Sequence[_Row]]) -> Iterator[_Row]:
    """Rows of the tests of all questions with Holm's p."""
    for suffix in (INTERVAL_P, *(test.removeprefix("primary.") for test in (EQUIVALENCE_P, BEYOND_P))):
        tests = [row for rows in rows_of for row in rows if str(row["metric"]).endswith(f".{suffix}")]
        p_values = holm([float(str(row["value"])) for row in tests])
        note = f"Holm over {len(tests)} comparisons pooled over models"
        for row, p in zip(tests, p_values, strict=True):
            name = adjusted_name(str(row["metric"]), HOLM_P)
            yield row | {"metric": name, "value": p, "method": f"{note}; {row['method']}"}
