"""Separation and calibration of probabilities, for a cohort and its resamples at once.

One score per item; `times[resample, item]` is how often a resample holds the item. Ties share a threshold.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cardiolens.score.statistics.items import Bools, Floats, Ints
from cardiolens.score.statistics.metrics import ratio

BINS = 10


@dataclass(frozen=True, slots=True)
class Curve:
    """Weights of positive and negative items at each distinct score, highest first: (resample, threshold)."""

    positive: Floats
    negative: Floats

    @staticmethod
    def of(scores: Floats, positive: Bools, times: Floats) -> "Curve":
        """Group items by score."""
        order = np.argsort(-scores, kind="stable")
        starts = np.flatnonzero(np.diff(-scores[order], prepend=-np.inf))
        times, positive = times[:, order], positive[order]
        return Curve(
            np.add.reduceat(times * positive, starts, axis=-1),
            np.add.reduceat(times * ~positive, starts, axis=-1),
        )


def auroc(curve: Curve) -> Floats:
    """Probability that a positive item scores above a negative one, ties half; NaN with one class only."""
    below = curve.negative.sum(axis=-1, keepdims=True) - np.cumsum(curve.negative, axis=-1)
    wins = (curve.positive * (below + 0.5 * curve.negative)).sum(axis=-1)
    return ratio(wins, curve.positive.sum(axis=-1) * curve.negative.sum(axis=-1))


def average_precision(curve: Curve) -> Floats:
    """Mean over positive items of the precision at their score; NaN without positive items."""
    true_positives = np.cumsum(curve.positive, axis=-1)
    precision = ratio(true_positives, true_positives + np.cumsum(curve.negative, axis=-1))
    return ratio(
        np.where(curve.positive > 0, curve.positive * precision, 0).sum(axis=-1), true_positives[..., -1]
    )


def calibration_error(confidence: Floats, right: Bools, times: Floats) -> Floats:
    """Expected calibration error: mean |accuracy - confidence| over BINS equal bins, weighted by items."""
    count, confidence_sum, right_sum = calibration(confidence, right, times)
    return ratio(np.abs(right_sum - confidence_sum).sum(axis=-1), count.sum(axis=-1))


def bins(confidence: Floats) -> Ints:
    """The bin of each confidence, 0 to BINS - 1; BINS - 1 holds 1."""
    return np.minimum((confidence * BINS).astype(np.int64), BINS - 1)


def calibration(confidence: Floats, right: Bools, times: Floats) -> tuple[Floats, Floats, Floats]:
    """Items, summed confidence and right items of each bin, as arrays (resample, bin)."""
    groups = (bins(confidence)[:, None] == np.arange(BINS)).astype(np.float64)
    return times @ groups, (times * confidence) @ groups, (times * right) @ groups


def risk_coverage(confidence: Floats, right: Bools, times: Floats) -> tuple[Floats, Floats]:
    """Coverage and error rate at each threshold, from most to least confident: (resample, threshold)."""
    curve = Curve.of(confidence, right, times)
    retained = np.cumsum(curve.positive + curve.negative, axis=-1)
    return ratio(retained, retained[..., -1:]), ratio(np.cumsum(curve.negative, axis=-1), retained)


def risk_at(coverages: Sequence[float], confidence: Floats, right: Bools, times: Floats) -> Floats:
    """Error rate among the most confident items that reach each coverage: (resample, coverage)."""
    coverage, risk = risk_coverage(confidence, right, times)
    enough = coverage[:, None, :] >= np.asarray(coverages)[:, None] - 1e-12
    return np.take_along_axis(risk, enough.argmax(axis=-1), axis=-1)


def risk_area(confidence: Floats, right: Bools, times: Floats) -> Floats:
    """Area under risk against coverage: 0 is best, uninformative confidence gives the error rate."""
    coverage, risk = risk_coverage(confidence, right, times)
    step = np.diff(coverage, axis=-1, prepend=0)
    return np.asarray(np.where(step > 0, step * risk, 0).sum(axis=-1))
