"""Selectors on one pool of frames: random, uniform, all, those that look at frames, and other packages'."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from cardiolens.base.errors import InputError
from cardiolens.config.plugin_words import Options
from cardiolens.protocol.select import hashed
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.route import Volumes
from cardiolens.protocol.select.selection import Frame, pick_all
from cardiolens.protocol.select.selector_plugin import plugged
from cardiolens.protocol.select.spread import even

_LENT = 4  # step of frames outside the pool, as in the clinical cascades


@dataclass(frozen=True, slots=True)
class PoolContext:
    """What a choice may depend on besides pool and budget."""

    selector: str  # name, for messages
    kind: str
    pool: Literal["routed", "sequence"]
    study_id: str
    seed: int | None = None
    features: StudyFeatures | None = None
    question: str | None = None  # text, for kind relevance and those of other packages
    options: Options = ()  # of a kind of another package


def chosen(pool: Volumes, lent: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    """Choose frames of the pool; once it is used up, of the lent volumes in order (protocol 16.9).

    Lent volumes are those that the clinical selector falls back to; each is used up before the next.
    """
    choice = CHOICES.get(context.kind, plugged)
    frames = choice(pool, budget, context)
    is_used_up = len(frames) == sum(volume.n_frames for volume in pool)  # others may choose fewer on purpose
    for volume in lent if context.kind != "all" and is_used_up else ():
        if len(frames) < budget:
            frames = [*frames, *_lent(choice((volume,), budget - len(frames), context))]
    return frames


def stratified(pool: Volumes, lent: Volumes, quotas: Mapping[str, int], context: PoolContext) -> list[Frame]:
    """Choose random frames by volume quota, in the same ranking as `random`."""
    own_frames, lent_frames = (
        [
            frame
            for volume in volumes
            for frame in _random((volume,), quotas.get(volume.volume_id, 0), context)
        ]
        for volumes in (pool, lent)
    )
    return [*own_frames, *_lent(lent_frames)]


def _lent(frames: Iterable[Frame]) -> list[Frame]:
    return [frame._replace(step=_LENT) for frame in frames]


def _random(pool: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    if context.seed is None:
        raise InputError(f"selector {context.selector!r} is random and needs a seed, e.g. seeds: [2026]")
    return hashed.first_by_hash(context.seed, context.study_id, pool, budget)


def _uniform(pool: Volumes, budget: int, context: PoolContext) -> list[Frame]:
    places = even(sum(volume.n_frames for volume in pool), budget)
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
    if context.features is None:
        raise InputError(
            f"selector {context.selector!r} ({context.kind}) looks at frames and needs their features; "
            "prepare the dataset with this selector named"
        )
    return list(context.features.picked(context.kind, pool, budget, context.question))


CHOICES: Mapping[str, Callable[[Volumes, int, PoolContext], list[Frame]]] = {
    "random": _random,
    "uniform": _uniform,
    "all": _all,
    "kcenter": _diverse,
    "kmedoids": _diverse,
    "relevance": _diverse,
}
