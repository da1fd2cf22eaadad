"""Differences in a cohort and its resamples, with what fell out and was not read; they can be summed up."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.hypothesis_tests import beyond_p, equivalence_p
from cardiolens.score.statistics.statistic import Basis, Row, Statistic, how, interval_of, scale
from cardiolens.score.statistics.verdict_rows import COMPLETE


class Reach(NamedTuple):
    """The reach of a difference over answers that are not known, as fractions, and counts of these."""

    low: float  # had the missing answers been wrong on our side and right on the other
    high: float  # had they been the reverse
    read: float  # the difference on the items that were read on both sides
    n_read: int
    n_unread: int = 0  # replies of our side that were not read
    n_unread_versus: int = 0
    n_missing: int = 0  # items that were not judged
    n_dropped: int = 0  # these, and items with replies that could not be read
    n_asked: int = 0
    n_same: int = 0  # items with the same request on both sides


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference, as a fraction, and what is known of it."""

    statistic: Statistic
    reach: Reach
    weight: float = 1.0  # of the pairs that are in

    @staticmethod
    def of(difference: Statistic) -> "Effect":
        """The effect that a difference is where all was judged and read."""
        value = float(difference.values[0])
        return Effect(difference, Reach(value, value, value, difference.basis.n_items))

    def times(self, weight: float) -> "Effect":
        """This effect with a weight; a negative one exchanges the sides."""
        reach = self.reach
        low, high = sorted((weight * reach.low, weight * reach.high))
        unread, versus = (reach.n_unread, reach.n_unread_versus)[:: 1 if weight > 0 else -1]
        reach = reach._replace(low=low, high=high, read=weight * reach.read)
        reach = reach._replace(n_unread=unread, n_unread_versus=versus)
        statistic = replace(self.statistic, values=weight * self.statistic.values)
        return Effect(statistic, reach, abs(weight))

    def row(self, key: Key, method: str, *, against_margin: bool = True) -> Row:
        """The row of a comparison, without its p; of scores with the tests against the margin."""
        reach, unit = self.reach, scale(key[0])
        row = comparison(key, self.statistic, method, against_margin=against_margin)
        if against_margin:
            row["n_same_request"] = reach.n_same
        if reach.n_dropped:
            row |= {"n_dropped": reach.n_dropped, "low_bound": unit * reach.low}
            row |= {"high_bound": unit * reach.high}
            row["is_incomplete"] = reach.n_missing > (1 - COMPLETE) * reach.n_asked
        if reach.n_unread + reach.n_unread_versus:
            row |= {"read_difference": unit * reach.read, "n_read": reach.n_read}
            row |= {"n_unread": reach.n_unread, "n_unread_versus": reach.n_unread_versus}
        return row


def comparison(key: Key, difference: Statistic, method: str, *, against_margin: bool = True) -> Row:
    """The row of a difference on a tier with its intervals; of scores also the tests against the margin."""
    (metric, tier), basis = key, difference.basis
    interval = interval_of(metric, difference)
    row: Row = {
        "metric": metric,
        "tier": int(tier.removeprefix("tier:")),
        "difference": interval.value,
        "low": interval.low,
        "high": interval.high,
        "n_items": basis.n_items,
        "n_patients": basis.n_patients,
        "method": how(basis, interval, method),
    }
    if metric == "primary" and against_margin:
        at_90 = interval_of(metric, difference, level=0.9)
        row |= {"low_90": at_90.low, "high_90": at_90.high}
        row["within_p"] = equivalence_p(at_90, int(basis.units))
        row["beyond_p"] = beyond_p(at_90, int(basis.units))
    return row


def total(effects: Sequence[Effect]) -> Effect:
    """The sum of effects; its basis counts all of their items."""
    values = np.sum([effect.statistic.values for effect in effects], axis=0)
    basis = joined([effect.statistic.basis for effect in effects])
    reach = Reach(*(sum(getattr(effect.reach, name) for effect in effects) for name in Reach._fields))
    return Effect(Statistic(values, basis, of_pairs=True), reach, sum(effect.weight for effect in effects))


def mean(effects: Sequence[Effect]) -> Effect:
    """The mean of effects, of equal weight."""
    return total([effect.times(1 / len(effects)) for effect in effects])


def joined(bases: Sequence[Basis], note: str = "", *, n_arms: int = 1) -> Basis:
    """The basis of a mean over arms or pairs: all items are counted, and it is worth those of one of them.

    Models share their patients and items, so a mean over them is known no better than one of them may be.
    """
    return Basis(
        n_items=sum(basis.n_items for basis in bases),
        n_patients=max(basis.n_patients for basis in bases),
        n_parse_error=sum(basis.n_parse_error for basis in bases),
        n_refusal=sum(basis.n_refusal for basis in bases),
        note=note,
        n_effective=min(basis.n_effective for basis in bases),
        effective_items=min(min(basis.effective_items, basis.n_entities or basis.n_items) for basis in bases),
        n_entities=sum(basis.n_entities for basis in bases),
        n_arms=n_arms,
        n_hospitals=bases[0].n_hospitals,
        hospital_inflation=max(basis.hospital_inflation for basis in bases),
    )
