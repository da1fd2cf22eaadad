"""Differences in a cohort and its resamples, with what fell out and was not read; they can be summed up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cardiolens.score.statistics.comparisons import comparison
from cardiolens.score.statistics.counting import Key
from cardiolens.score.statistics.items import Floats
from cardiolens.score.statistics.statistic import Basis, Row, Statistic, scale
from cardiolens.score.statistics.verdict_rows import COMPLETE


@dataclass(frozen=True, slots=True)
class Limits:
    """Reach of a difference over the answers that are not known, as fractions."""

    low: float  # had the missing answers been wrong for our side and right for theirs
    high: float  # had they been the reverse
    n_missing: int = 0  # items that were not judged
    n_unread: int = 0  # items with replies that could not be read
    n_asked: int = 0


@dataclass(frozen=True, slots=True)
class ReadInBoth:
    """A difference on the items read in both arms, as a fraction, and the replies not read."""

    value: float
    n_items: int
    n_unread: int = 0
    n_unread_versus: int = 0


@dataclass(frozen=True, slots=True)
class Effect:
    """A difference in the cohort and its resamples, as fractions, and what it rests on."""

    values: Floats
    basis: Basis
    limits: Limits
    read: ReadInBoth
    n_same: int = 0  # items whose request is the same on both sides
    weight: float = 1.0  # of the pairs that are in

    @staticmethod
    def of(
        statistic: Statistic,
        limits: Limits | None = None,
        read: ReadInBoth | None = None,
        n_same: int = 0,
    ) -> "Effect":
        """The effect that a difference is; without limits all was judged, without `read` all was read."""
        value, basis = float(statistic.values[0]), statistic.basis
        limits, read = limits or Limits(value, value), read or ReadInBoth(value, basis.n_items)
        return Effect(statistic.values, basis, limits, read, n_same)

    @property
    def statistic(self) -> Statistic:
        """The difference itself."""
        return Statistic(self.values, self.basis, of_pairs=True)

    def times(self, weight: float) -> "Effect":
        """This effect with a weight; a negative one exchanges the sides."""
        low, high = sorted((weight * self.limits.low, weight * self.limits.high))
        unread = self.read.n_unread, self.read.n_unread_versus
        unread = unread if weight > 0 else unread[::-1]
        return replace(
            self,
            values=weight * self.values,
            limits=replace(self.limits, low=low, high=high),
            read=ReadInBoth(weight * self.read.value, self.read.n_items, *unread),
            weight=abs(weight),
        )

    def row(self, key: Key, method: str) -> Row:
        """The row of a comparison, without its p."""
        (metric, tier), limits, read = key, self.limits, self.read
        row = comparison(metric, tier, self.statistic, method) | {"n_same_request": self.n_same}
        unit = scale(metric)
        if n_dropped := limits.n_missing + limits.n_unread:
            row |= {"n_dropped": n_dropped, "low_bound": unit * limits.low, "high_bound": unit * limits.high}
            row["is_incomplete"] = limits.n_missing > (1 - COMPLETE) * limits.n_asked
        if read.n_unread + read.n_unread_versus:
            row |= {"read_difference": unit * read.value, "n_read": read.n_items}
            row |= {"n_unread": read.n_unread, "n_unread_versus": read.n_unread_versus}
        return row


def total(effects: Sequence[Effect]) -> Effect:
    """The sum of effects; its basis counts all of their items."""
    limits, read = ([getattr(effect, name) for effect in effects] for name in ("limits", "read"))
    return Effect(
        np.sum([effect.values for effect in effects], axis=0),
        joined([effect.basis for effect in effects]),
        Limits(*(sum(getattr(part, name) for part in limits) for name in Limits.__slots__)),
        ReadInBoth(*(sum(getattr(part, name) for part in read) for name in ReadInBoth.__slots__)),
        sum(effect.n_same for effect in effects),
        sum(effect.weight for effect in effects),
    )


def mean(effects: Mapping[str, Effect]) -> Effect:
    """The mean of effects, of equal weight."""
    return total([effect.times(1 / len(effects)) for effect in effects.values()])


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
