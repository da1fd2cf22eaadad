"""Choose frames for a question by a selector, a budget and an order."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from cardiolens.base.errors import InputError
from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select import clinical
from cardiolens.protocol.select.clinical import SmallK
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.pool_selectors import PoolContext, chosen, stratified
from cardiolens.protocol.select.route import Route, Routed, Source, Volumes, resolve
from cardiolens.protocol.select.selection import Frame, Selection
from cardiolens.study.structure import StudyStructure

LADDER = (8, 16, 32, 64)  # budgets of 5.1; a nested order puts their frames first


def presented(frames: Iterable[Frame], volumes: Volumes) -> tuple[Frame, ...]:
    """Sort frames by volume as listed, then slice, then phase from end-diastole; a first pass by time."""
    places = {
        volume.volume_id: (place, 0 if volume.over_time == "first_pass" else volume.ed_phase, volume.n_phases)
        for place, volume in enumerate(volumes)
    }

    def key(frame: Frame) -> tuple[int, int, int]:
        place, first, n_phases = places[frame.volume_id]
        return place, frame.slice, (frame.phase - first) % n_phases

    return tuple(sorted(frames, key=key))


def nested(
    frames: Sequence[Frame], budget: int, smaller: Callable[[int], Sequence[Frame]]
) -> tuple[Frame, ...]:
    """Reorder frames: first those of the largest smaller LADDER budget, if all are among them.

    `smaller` returns the nested frames of a smaller budget. The ladder is fixed so that the order does not
    depend on the budgets of a sweep.
    """
    here = {(frame.volume_id, frame.idx): frame for frame in frames}
    for step in reversed([step for step in LADDER if step < budget]):
        first = [(frame.volume_id, frame.idx) for frame in smaller(step)]
        if all(place in here for place in first):
            front = set(first)
            rest = (frame for place, frame in here.items() if place not in front)
            return (*(here[place] for place in first), *rest)
    return tuple(frames)


def fitting(
    choose_at: Callable[[int], Selection], tokens_of: Callable[[Frame], int], limit: int, available: int
) -> Selection:
    """Return the selection with the most frames whose visual tokens are at most `limit`.

    `choose_at` selects for a budget in frames, at most `available`. If not even one frame fits, the selection
    is skipped with `frame_over_budget`.
    """
    if limit < 1:
        raise InputError(f"budget tokens:{limit} is not a number of tokens; give 1 or more, e.g. tokens:8192")

    def fits(selection: Selection) -> bool:
        return sum(map(tokens_of, selection.frames)) <= limit

    low, high = 0, available  # invariant: `low` frames fit
    while low < high:
        middle = (low + high + 1) // 2
        if fits(choose_at(middle)):
            low = middle
        else:
            high = middle - 1
    return choose_at(low) if low else Selection((), skipped="frame_over_budget")


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
