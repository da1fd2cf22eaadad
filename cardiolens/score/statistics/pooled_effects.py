"""Effects of models on a pooled question: weighted sums of differences of their arms (protocol 17.6)."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.differences import DIFFERING, PairScores
from cardiolens.score.statistics.factors import ArmPair
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.pooled_questions import PooledQuestion
from cardiolens.score.statistics.read_in_both import READ_IN_BOTH, ReadInBoth, total_of
from cardiolens.score.statistics.rows import scale
from cardiolens.score.statistics.statistic import Basis, Key


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
        effective_items=min(_worth(basis) for basis in bases),
        n_entities=sum(basis.n_entities for basis in bases),
        n_hospitals=bases[0].n_hospitals,
        hospital_inflation=max(basis.hospital_inflation for basis in bases),
    )


def _worth(basis: Basis) -> float:
    return min(basis.effective_items, basis.n_entities or basis.n_items)


class PooledEffects:
    """Sums up differences of pairs of arms for the models and questions that they belong to."""

    def __init__(self, questions: Sequence[PooledQuestion]) -> None:
        self._uses: dict[ArmPair, list[tuple[PooledQuestion, str, float]]] = {}
        for question in questions:
            for model, weights in question.weights.items():
                for pair, weight in weights.items():
                    self._uses.setdefault(pair, []).append((question, model, weight))
        self._effects: dict[tuple[str, str, str, Key], Effect] = {}

    @property
    def pairs(self) -> frozenset[ArmPair]:
        """The pairs of arms that are needed, in the direction of their question."""
        return frozenset(self._uses)

    def add(self, pair: PairScores) -> None:
        """Add the differences of a pair to the effects of which it is a part."""
        for arms, sign in (((pair.arm, pair.versus), 1), ((pair.versus, pair.arm), -1)):
            for question, model, weight in self._uses.get(arms, ()):
                for key, effect in _effects(pair):
                    place = question.arm_id, question.versus_arm_id, model, key
                    parts = [self._effects[place]] if place in self._effects else []
                    self._effects[place] = total([*parts, effect.times(sign * weight)])

    def put(self, question: PooledQuestion, model: str, key: Key, effect: Effect) -> None:
        """Set the effect of a model on a question that is no difference of two arms."""
        self._effects[question.arm_id, question.versus_arm_id, model, key] = effect

    def of(self, question: PooledQuestion, key: Key) -> dict[str, Effect]:
        """Effects by model, of those for which no pair is missing.

        Of items whose requests differ, over the pairs that have any.
        """
        effects = {}
        for model, weights in sorted(question.weights.items()):
            effect = self._effects.get((question.arm_id, question.versus_arm_id, model, key))
            if effect is None:
                continue
            if key[0] == DIFFERING:
                effects[model] = effect.times(1 / effect.weight)
            elif math.isclose(effect.weight, sum(map(abs, weights.values()))):
                effects[model] = effect
        return effects


def _effects(pair: PairScores) -> Iterator[tuple[Key, Effect]]:
    """The differences of a pair, on all common items and, of scores, on those whose requests differ."""
    rows = {(str(row["metric"]), str(row["scope"])): row for row in pair.rows}
    for (metric, scope), whole in pair.differences.items():
        if metric == DIFFERING:
            continue
        value = float(whole.values[0])
        bounds = rows.get((f"{metric}.bounds", scope))
        low, high = (
            (float(str(bounds[end])) / scale(metric) for end in ("low", "high")) if bounds else (value, value)
        )
        dropped = int(str(bounds["n_items"])) if bounds else 0
        n_same = int(str(rows[metric, scope]["n_same_request"]))
        read = ReadInBoth(value, whole.basis.n_items, 0, 0)
        if row := rows.get((f"{metric}.{READ_IN_BOTH}", scope)):
            read = total_of([ReadInBoth.of_row(row)], [1 / scale(metric)])
        yield (metric, scope), Effect(whole.values, whole.basis, low, high, dropped, n_same, read)
        if metric == "primary" and n_same < whole.basis.n_items:
            differing = pair.differences.get((DIFFERING, scope), whole)
            yield (DIFFERING, scope), Effect(differing.values, differing.basis, value, value, 0, 0, read)
