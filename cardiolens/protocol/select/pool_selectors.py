"""Selectors on one pool of frames: random, uniform, all, those that look at frames, and other packages'."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from typing import Protocol

from cardiolens.base.digest import digest_of
from cardiolens.config.plugins import Options, PluginError, blamed, make
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select.clinical import extract
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.selection import Frame, Source, Volumes, n_frames, pick_all, pick_idx
from cardiolens.study.structure import even


@lru_cache(maxsize=64)
def _ranked(seed: int, study_id: str, pool: Volumes) -> list[tuple[bytes, int, int]]:
    """Return every frame of a pool by its hash, as (hash, position of its volume, canonical index).

    The hash is SHA-256 of `seed|study_id|volume|idx`.
    """
    return sorted(
        (sha256(f"{seed}|{study_id}|{volume.volume_id}|{idx}".encode()).digest(), place, idx)
        for place, volume in enumerate(pool)
        for idx in range(volume.n_frames)
    )


class FrameSelector(Protocol):
    """Chooses frames. The entry point makes it of the `options` of `conf/selector`."""

    def select(
        self, pool: Volumes, budget: int, *, seed: int | None, question: str
    ) -> Sequence[tuple[str, int]]:
        """Return at most `budget` different frames of the pool, each as volume_id and canonical index.

        The answer must depend on the arguments alone. `seed` differs by study; it is None without `seeds`.
        """
        ...


@lru_cache
def open_selector(word: str, options: Options) -> FrameSelector:
    """Make the selector that a word names; InputError or PluginError if it cannot be used."""
    selector: FrameSelector = make("selectors", word, FrameSelector, **dict(options))
    return selector


def plugged(pool: Volumes, budget: int, context: "PoolContext") -> list[Frame]:
    """Choose frames of the pool by a selector of another package; PluginError if its answer is not usable."""
    word = context.selector.kind
    selector = open_selector(word, context.selector.options)
    seed = None if context.seed is None else int(digest_of([context.seed, context.study_id])[:8], 16)
    with blamed(word):
        answer = selector.select(pool, budget, seed=seed, question=context.question or "")
        picked = [(str(volume_id), int(idx)) for volume_id, idx in answer]
    by_id = {volume.volume_id: volume for volume in pool}
    offered = {name: volume.n_frames for name, volume in by_id.items()}
    legal = all(0 <= idx < offered.get(volume_id, 0) for volume_id, idx in picked)
    if not legal or not len(picked) == len(set(picked)) <= budget:
        raise PluginError(
            f"plugin {word}: chose {picked}; expected at most {budget} different frames of the pool "
            f"{offered}; its maker must correct it"
        )
    return [pick_idx(by_id[volume_id], idx) for volume_id, idx in picked]


_LENT = 4  # step of frames outside the pool, as in the clinical cascades


@dataclass(frozen=True, slots=True)
class PoolContext:
    """What a choice may depend on besides pool and budget."""

    selector: SelectorSpec
    study_id: str
    seed: int | None
    features: StudyFeatures | None
    question: str | None  # text, for kinds of other packages
    sources: tuple[Source, ...]  # of the route


def chosen(pool: Volumes, lent: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    """Choose frames of the pool; once it is used up, of the lent volumes in order.

    Lent volumes are those that the clinical selector falls back to; each is used up before the next.
    """
    kind = context.selector.kind
    choice = CHOICES.get(kind, plugged)
    frames = choice(pool, budget, context)
    is_used_up = len(frames) == n_frames(pool)  # others may choose fewer on purpose
    choice = _random if kind == "stratified" else choice  # a lent volume has no quota
    for volume in lent if kind not in ("all", "self") and is_used_up else ():
        if len(frames) < budget:
            more = choice((volume,), budget - len(frames), context)
            frames = [*frames, *(frame._replace(step=_LENT) for frame in more)]
    return frames


def _random(pool: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    assert context.seed is not None, "the configuration gives seeds to selectors that are random"
    ranked = _ranked(context.seed, context.study_id, pool)  # so smaller budgets are subsets of larger
    return [pick_idx(pool[place], idx) for _, place, idx in ranked[:budget]]


def _stratified(pool: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    """Choose random frames of each volume, as many as the clinical selector does."""
    quotas = Counter(frame.volume_id for frame in extract(context.sources, pool, budget))
    return [frame for volume in pool for frame in _random((volume,), quotas[volume.volume_id], context)]


def _uniform(pool: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    places = even(n_frames(pool), budget)
    frames: list[Frame] = []
    start = 0
    for volume in pool:
        end = start + volume.n_frames
        frames += pick_all(volume, [place - start for place in places if start <= place < end])
        start = end
    return frames


def _all(pool: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    return [frame for volume in pool for frame in pick_all(volume, range(volume.n_frames))]


def _diverse(pool: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    assert context.features is not None, "the features of a study are read if a selector needs them"
    return list(context.features.picked(context.selector.kind, pool, budget))


CHOICES: Mapping[str, Callable[[Volumes, int, PoolContext], list[Frame]]] = {
    "random": _random,
    "stratified": _stratified,
    "uniform": _uniform,
    "all": _all,
    "self": _all,  # on offer
    "kcenter": _diverse,
    "kmedoids": _diverse,
}
