"""The public sub-cohort: a share of the numbered studies, stratified by class."""

from collections import Counter
from functools import lru_cache

from cardiolens.phantom import draws
from cardiolens.phantom.archetypes import archetypes

PUBLIC_SHARE = 135 / 670  # sizes of the public and the full cohort in the paper
_GROWTH = 128


def class_of(seed: int, number: int) -> tuple[str, str]:
    """Return class and variant of a numbered study; studies 1 .. n nearly have the shares of 10.4."""
    names = list(archetypes())
    shares = [archetypes()[name].share for name in names]
    which, rest = draws.pick(draws.spread(seed, number), shares)
    variants = list(archetypes()[names[which]].variants)
    return names[which], variants[min(int(rest * len(variants)), len(variants) - 1)]


def is_public(seed: int, number: int) -> bool:
    """Return whether a numbered study belongs to the public sub-cohort."""
    return number in _public(seed, -(-number // _GROWTH) * _GROWTH)


@lru_cache(maxsize=16)
def _public(seed: int, count: int) -> frozenset[int]:
    """Return the public numbers up to `count`: a study is public when due, if its class has credit left."""
    credit: Counter[str] = Counter()
    public: list[int] = []
    for number in range(1, count + 1):
        kind = class_of(seed, number)[0]
        credit[kind] += 135
        if credit[kind] > 0 and len(public) < int(number * PUBLIC_SHARE + 0.5):
            public.append(number)
            credit[kind] -= 670
    return frozenset(public)
