"""Rate of misread replies from a stratified sample that a person read, with its interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class Stratum:
    """Replies of one model that one rule read, the sample of them, and what a person found in it."""

    size: int
    audited: int
    misread: int
    shift: int = 0  # right by the person's reading and wrong as read, less the opposite


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval of 95 %."""

    value: float
    low: float
    high: float


def misreading(strata: Sequence[Stratum]) -> Estimate:
    """The share of misread replies among all of a model.

    Strata are weighted by their sizes. The interval is Wilson's at the size of a simple random sample of the
    same variance; strata that nobody audited may be misread whole or not at all.
    """
    audited, total, covered = _covered(strata)
    if not audited:
        return Estimate(math.nan, 0.0, 1.0)
    value = sum(stratum.size / covered * stratum.misread / stratum.audited for stratum in audited)
    variance = _variance(audited, covered, [stratum.misread for stratum in audited])
    low, high = (value, value) if variance == 0 else _wilson(value, variance, audited)
    share = covered / total
    return Estimate(value, low * share, min(1.0, high * share + 1 - share))


def shift(strata: Sequence[Stratum]) -> Estimate:
    """How far the share of right answers would move if the person had read all replies."""
    audited, total, covered = _covered(strata)
    if not audited:
        return Estimate(math.nan, -1.0, 1.0)
    value = sum(stratum.size / covered * stratum.shift / stratum.audited for stratum in audited)
    half = _Z * math.sqrt(_variance(audited, covered, [abs(stratum.shift) for stratum in audited]))
    share = covered / total
    return Estimate(
        value, max(-1.0, (value - half) * share - 1 + share), min(1.0, (value + half) * share + 1 - share)
    )


def _covered(strata: Sequence[Stratum]) -> tuple[list[Stratum], int, int]:
    audited = [stratum for stratum in strata if stratum.audited]
    return audited, sum(stratum.size for stratum in strata), sum(stratum.size for stratum in audited)


def _variance(audited: Sequence[Stratum], covered: int, events: Sequence[int]) -> float:
    """Variance of a stratified mean; each stratum's rate is drawn to that of all, so that none is zero."""
    overall = (sum(events) + 1) / (sum(stratum.audited for stratum in audited) + 2)
    variance = 0.0
    for stratum, count in zip(audited, events, strict=True):
        rate = (count + overall) / (stratum.audited + 1)
        unseen = 1 - stratum.audited / stratum.size
        variance += (stratum.size / covered) ** 2 * rate * (1 - rate) / stratum.audited * unseen
    return variance


def _wilson(value: float, variance: float, audited: Sequence[Stratum]) -> tuple[float, float]:
    n_audited = sum(stratum.audited for stratum in audited)
    rate = min(max(value, 1 / (n_audited + 2)), 1 - 1 / (n_audited + 2))
    n = rate * (1 - rate) / variance
    centre = (value + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(value * (1 - value) / n + _Z**2 / (4 * n**2))
    return max(0.0, centre - half), min(1.0, centre + half)
