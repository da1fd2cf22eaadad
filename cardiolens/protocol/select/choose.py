"""Frame selection by any selector, from a study's structure, a route and a budget.

Selectors cannot see labels, masks, reports or patients: their arguments do not contain them.
"""

from collections.abc import Sequence
from functools import lru_cache

from cardiolens.base.errors import InputError
from cardiolens.config.selector import SelectorSpec
from cardiolens.protocol.select import clinical
from cardiolens.protocol.select.cine import SmallK
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.order import nested, presented
from cardiolens.protocol.select.pool_selectors import PoolContext, chosen, stratified
from cardiolens.protocol.select.route import Route, Routed, Source, Volumes, resolve
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.study.structure import StudyStructure


def choose(
    selector: SelectorSpec,
    seed: int | None,
    structure: StudyStructure,
    route: Route,
    budget: int,
    *,
    features: StudyFeatures | None = None,
    question: str | None = None,
) -> Selection:
    """Select at most `budget` frames for a subtask (kind `all`: every frame; `self`: all on offer).

    Random and stratified selectors need `seed`; those that look at pixels, the `features` of the study; kind
    relevance and those of other packages, the text of the `question`. Subtasks with the same sources share
    one tuple of frames.
    """
    if budget < 1:
        raise InputError(f"budget {budget} is not a number of frames; give 1 or more, e.g. 16")
    volumes, nest = tuple(structure.volumes.values()), selector.order == "nested"
    if selector.kind == "clinical":
        return _clinical(volumes, route, budget, selector.lax_small_k, nest)
    wording = question if selector.kind == "relevance" or selector.plugged else None
    kind = "all" if selector.kind == "self" else selector.kind
    context = PoolContext(
        selector.name, kind, selector.pool, structure.study_id, seed, features, wording, selector.options
    )
    return (_stratified if selector.kind == "stratified" else _pooled)(volumes, route, budget, nest, context)


@lru_cache(maxsize=1024)
def _clinical(volumes: Volumes, route: Route, budget: int, small_k: SmallK, nest: bool) -> Selection:
    routed = resolve(volumes, route)
    if routed.skipped is None and clinical.unknown_levels(routed):
        return Selection((), skipped="slice_order_unknown")
    volumes_shown = routed.volumes + _fallbacks(routed, route, volumes)
    return _selection(
        routed, volumes_shown, route, budget, _extracted(routed.sources, volumes_shown, budget, small_k, nest)
    )


@lru_cache(maxsize=256)
def _pooled(volumes: Volumes, route: Route, budget: int, nest: bool, context: PoolContext) -> Selection:
    routed = resolve(volumes, route)
    pool = routed.volumes if context.pool == "routed" else _whole_sequences(routed.volumes, volumes)
    lent = tuple(volume for volume in _fallbacks(routed, route, volumes) if volume not in pool)
    return _selection(routed, pool + lent, route, budget, _drawn(pool, lent, budget, nest, context))


@lru_cache(maxsize=256)
def _stratified(volumes: Volumes, route: Route, budget: int, nest: bool, context: PoolContext) -> Selection:
    routed = resolve(volumes, route)
    lent = _fallbacks(routed, route, volumes)
    frames = _by_quota(routed.sources, lent, budget, nest, context)
    return _selection(routed, routed.volumes + lent, route, budget, frames)


@lru_cache(maxsize=1024)
def _extracted(
    sources: tuple[Source, ...], volumes_shown: Volumes, budget: int, small_k: SmallK, nest: bool
) -> tuple[Frame, ...]:
    frames = presented(clinical.extract(sources, volumes_shown, budget, small_k), volumes_shown)
    if not nest:
        return frames
    return nested(frames, budget, lambda smaller: _extracted(sources, volumes_shown, smaller, small_k, nest))


@lru_cache(maxsize=256)
def _drawn(pool: Volumes, lent: Volumes, budget: int, nest: bool, context: PoolContext) -> tuple[Frame, ...]:
    frames = presented(chosen(pool, lent, budget, context), pool + lent)
    if not nest:
        return frames
    return nested(frames, budget, lambda smaller: _drawn(pool, lent, smaller, nest, context))


@lru_cache(maxsize=256)
def _by_quota(
    sources: tuple[Source, ...], lent: Volumes, budget: int, nest: bool, context: PoolContext
) -> tuple[Frame, ...]:
    pool = tuple(volume for source in sources for volume in source.volumes)
    quotas = clinical.quotas(sources, pool + lent, budget)
    frames = presented(stratified(pool, lent, quotas, context), pool + lent)
    if not nest:
        return frames
    return nested(frames, budget, lambda smaller: _by_quota(sources, lent, smaller, nest, context))


def _fallbacks(routed: Routed, route: Route, volumes: Volumes) -> Volumes:
    return () if route.only_routed else clinical.fallbacks(routed.sources, volumes)


def _whole_sequences(pool: Volumes, volumes: Volumes) -> Volumes:
    """Return a pool and all other volumes of its sequences, in their listed order."""
    sequences = {volume.sequence for volume in pool}
    by_id = {volume.volume_id: volume for volume in volumes if volume not in pool}
    listed = pool[0].anatomy.sequences.items() if pool else ()
    names = (name for sequence, kind in listed if sequence in sequences for name in kind.volume_ids)
    return pool + tuple(by_id[name] for name in names if name in by_id)


def _selection(
    routed: Routed, volumes_shown: Volumes, route: Route, budget: int, frames: tuple[Frame, ...]
) -> Selection:
    if routed.skipped is not None:
        return Selection((), skipped=routed.skipped)
    flags = {
        "short": len(frames) < budget,
        "no_temporal_evidence": route.temporal and not _shows_motion(frames),
        "levels_unknown": any(
            not volume.levels_known and volume.slice_axis is not None for volume in volumes_shown
        ),
    }
    return Selection(frames, (*routed.flags, *(flag for flag, holds in flags.items() if holds)))


def _shows_motion(frames: Sequence[Frame]) -> bool:
    """Return whether any layer of any view is shown at two phases or more."""
    return len({(frame.volume_id, frame.slice) for frame in frames}) < len(frames)
