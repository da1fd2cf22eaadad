"""Counts a patient, which add up: over parts of a table, and over patients of a resample."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from cardiolens.stats.items import Floats, Ints, Items


@dataclass(frozen=True, slots=True)
class State:
    """Whole numbers, arrays whose first axis is a unit (patient, or resample of patients).

    They are float64, exact to 2**53, so that sums do not depend on their order.
    """

    def __add__(self, other: Self) -> Self:
        return type(self)(
            *(mine + theirs for mine, theirs in zip(self._arrays(), other._arrays(), strict=True))
        )

    def resampled(self, weights: Floats) -> Self:
        """Sums over patients, each `weights[resample, patient]` times."""
        return type(self)(*(_weighted(array, weights) for array in self._arrays()))

    def _arrays(self) -> list[Floats]:
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True, slots=True)
class Choices(State):
    """Answers to single and ordinal questions."""

    confusion: Floats  # (unit, gold, predicted), the last predicted column unparsed

    @classmethod
    def of(cls, items: Items, units: int) -> Self:
        """Matrices of the items of one subtask by patient."""
        size = int(items.options.max(initial=1))
        predicted = np.where(items.parsed == 0, size, _first_bit(items.parsed))
        return cls(_cells((items.patient, _first_bit(items.gold), predicted), (units, size, size + 1)))


@dataclass(frozen=True, slots=True)
class Sets(State):
    """Answers to multi-select questions."""

    overlaps: Floats  # (unit, true positives, errors): how many items; fixes every mean over items
    options: Floats  # (unit, option, [tp, fp, fn]); fixes every pooled ratio

    @classmethod
    def of(cls, items: Items, units: int) -> Self:
        """Counts of the items of one subtask by patient."""
        size = int(items.options.max(initial=1))
        bits = 1 << np.arange(size)
        gold, found = (items.gold[:, None] & bits) > 0, (items.parsed[:, None] & bits) > 0
        right, wrong = (gold & found).sum(axis=1), (gold ^ found).sum(axis=1)
        options = np.zeros((units, size, 3))
        for cell, flags in enumerate((gold & found, found & ~gold, gold & ~found)):
            np.add.at(options[:, :, cell], items.patient, flags)
        return cls(_cells((items.patient, right, wrong), (units, size + 1, size + 1)), options)


def _weighted(array: Floats, weights: Floats) -> Floats:
    sums = weights @ array.reshape(len(array), -1)
    return np.asarray(sums).reshape(len(weights), *array.shape[1:])


def _first_bit(masks: Ints) -> Ints:
    return np.asarray(np.log2(np.maximum(masks, 1)), np.int64)


def _cells(positions: tuple[Ints, ...], shape: tuple[int, ...]) -> Floats:
    flat = np.ravel_multi_index(positions, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
