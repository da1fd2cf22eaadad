"""Additive counts per patient: they sum over parts of a table and over the patients of a resample."""

from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from cardiolens.score.statistics.items import Bools, Floats, Ints


@dataclass(frozen=True, slots=True)
class State:
    """Arrays of whole numbers whose first axis is a unit (patient, or resample of patients).

    They are float64, exact to 2**53, so that sums do not depend on their order.
    """

    def __add__(self, other: Self) -> Self:
        return type(self)(
            *(mine + theirs for mine, theirs in zip(self._arrays(), other._arrays(), strict=True))
        )

    def resampled(self, weights: Floats) -> Self:
        """Sums over patients, each `weights[resample, patient]` times."""
        return type(self)(*(_weighted_sums(array, weights) for array in self._arrays()))

    def _arrays(self) -> list[Floats]:
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True, slots=True)
class AnswerMasks:
    """Answers and gold answers as bit masks of options, for questions with `size` options."""

    gold: Ints
    parsed: Ints
    size: int


@dataclass(frozen=True, slots=True)
class Choices(State):
    """Answers to single and ordinal questions."""

    confusion: Floats  # (unit, gold, predicted), the last predicted column unparsed

    @classmethod
    def of(cls, answers: AnswerMasks, unit: Ints, units: int) -> Self:
        """Count confusion matrices by unit."""
        size = answers.size
        predicted = np.where(answers.parsed == 0, size, _first_bit(answers.parsed))
        return cls(_cells((unit, _first_bit(answers.gold), predicted), (units, size, size + 1)))


@dataclass(frozen=True, slots=True)
class Sets(State):
    """Answers to multi-select questions."""

    overlaps: Floats  # (unit, true positives, errors): how many items; fixes every mean over items
    options: Floats  # (unit, option, [tp, fp, fn]); fixes every pooled ratio

    @classmethod
    def of(cls, answers: AnswerMasks, unit: Ints, units: int) -> Self:
        """Count overlaps and options by unit."""
        size = answers.size
        gold, predicted = _flags(answers.gold, size), _flags(answers.parsed, size)
        right, wrong = (gold & predicted).sum(axis=1), (gold ^ predicted).sum(axis=1)
        options = np.zeros((units, size, 3))
        for cell, flags in enumerate((gold & predicted, predicted & ~gold, gold & ~predicted)):
            item, option = np.nonzero(flags)
            options[:, :, cell] = _cells((unit[item], option), (units, size))
        return cls(_cells((unit, right, wrong), (units, size + 1, size + 1)), options)


def state_of(answer_type: str, answers: AnswerMasks, unit: Ints, units: int) -> Choices | Sets:
    """Count the answers to one subtask by unit."""
    return (Sets if answer_type == "multi" else Choices).of(answers, unit, units)


def _weighted_sums(array: Floats, weights: Floats) -> Floats:
    # resamples lie next to each other in memory: sums over cells then run along them, six times as fast
    sums = array.reshape(len(array), -1).T @ weights.T
    return np.moveaxis(sums.reshape(*array.shape[1:], len(weights)), -1, 0)


def _flags(masks: Ints, size: int) -> Bools:
    return (masks[:, None] & (1 << np.arange(size))) > 0


def _first_bit(masks: Ints) -> Ints:
    return np.asarray(np.log2(np.maximum(masks, 1)), np.int64)


def _cells(positions: tuple[Ints, ...], shape: tuple[int, ...]) -> Floats:
    flat = np.ravel_multi_index(positions, shape)
    return np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)
