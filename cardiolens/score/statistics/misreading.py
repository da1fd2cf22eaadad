"""Rate of misread replies from a stratified sample that a person read, with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cardiolens.score.statistics.bootstrap import Interval

_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class Stratum:
    """Replies of one model that one rule read, the sample of them, and what a person found in it."""

    size: int
    audited: int
    misread: int
    shift: int = 0  # right by the person's reading and wrong as read, less the opposite


def misreading(strata: Sequence[Stratum]) -> Interval:
    """The share of misread replies among all of a model.

    Strata are weighted by their sizes. The interval is Wilson's at the size of a simple random sample of the
    same variance; strata that nobody audited may be misread whole or not at all.
    """
    n_audited, share, value, variance = _stratified(strata, [stratum.misread for stratum in strata])
    if not n_audited:
        return Interval(math.nan, 0.0, 1.0)
    low = high = value
    if variance:
        rate = min(max(value, 1 / (n_audited + 2)), 1 - 1 / (n_audited + 2))
        n = rate * (1 - rate) / variance
        centre = (value + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
        half = _Z / (1 + _Z**2 / n) * math.sqrt(value * (1 - value) / n + _Z**2 / (4 * n**2))
        low, high = max(0.0, centre - half), min(1.0, centre + half)
    return Interval(value, low * share, min(1.0, high * share + 1 - share))


def shift(strata: Sequence[Stratum]) -> Interval:
    """How far the share of right answers would move if the person had read all replies."""
    n_audited, share, value, variance = _stratified(strata, [stratum.shift for stratum in strata])
    if not n_audited:
        return Interval(math.nan, -1.0, 1.0)
    half, rest = _Z * math.sqrt(variance), 1 - share
    return Interval(value, max(-1.0, (value - half) * share - rest), min(1.0, (value + half) * share + rest))


def _stratified(strata: Sequence[Stratum], events: Sequence[int]) -> tuple[int, float, float, float]:
    """The number of audited replies, the share of all in their strata, and mean of events with its variance.

    Each stratum's rate is drawn to that of all, so that none is zero.
    """
    pairs = [(stratum, count) for stratum, count in zip(strata, events, strict=True) if stratum.audited]
    covered = sum(stratum.size for stratum, _ in pairs)
    n_audited = sum(stratum.audited for stratum, _ in pairs)
    overall = (sum(abs(count) for _, count in pairs) + 1) / (n_audited + 2)
    value = variance = 0.0
    for stratum, count in pairs:
        value += stratum.size / covered * count / stratum.audited
        rate = (abs(count) + overall) / (stratum.audited + 1)
        unseen = 1 - stratum.audited / stratum.size
        variance += (stratum.size / covered) ** 2 * rate * (1 - rate) / stratum.audited * unseen
    total = sum(stratum.size for stratum in strata)
    return n_audited, covered / total if total else 0.0, value, variance
