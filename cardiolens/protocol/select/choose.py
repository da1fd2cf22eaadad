"""Choose frames for a question by a selector, a budget and an order."""

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

from cardiolens.config.sweep_factors import SelectorSpec
from cardiolens.protocol.select import clinical
from cardiolens.protocol.select.feature_store import StudyFeatures
from cardiolens.protocol.select.pool_selectors import PoolContext, chosen
from cardiolens.protocol.select.selection import Frame, Selection, Volumes, resolve
from cardiolens.protocol.tasks.catalogue import Subtask
from cardiolens.study.structure import StudyStructure

LADDER = (8, 16, 32, 64)  # budgets; a nested order puts their frames first


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
            return tuple(here[place] for place in dict.fromkeys([*first, *here]))
    return tuple(frames)


def fitting(
    choose_at: Callable[[int], Selection], tokens_of: Callable[[Frame], int], limit: int, available: int
) -> Selection:
    """Return the selection with the most frames that take at most `limit` visual tokens.

    `choose_at` selects for a budget in frames, at most `available`. If not even one frame fits, the selection
    is skipped with `frame_over_budget`.
    """
    low, high = 0, available  # invariant: `low` frames fit
    while low < high:
        middle = (low + high + 1) // 2
        if sum(map(tokens_of, choose_at(middle).frames)) <= limit:
            low = middle
        else:
            high = middle - 1
    return choose_at(low) if low else Selection((), skipped="frame_over_budget")


def choose(
    selector: SelectorSpec,
    seed: int | None,
    structure: StudyStructure,
    subtask: Subtask,
    budget: int,
    *,
    features: StudyFeatures | None = None,
    question: str | None = None,
) -> Selection:
    """Select at most `budget` frames for a subtask (kind `all`: every frame; `self`: all on offer).

    Random and stratified selectors need `seed`; those that look at pixels, the `features` of the study; those
    of other packages, the text of the `question`. Subtasks with the same sources share one tuple of frames.
    """
    volumes = tuple(structure.volumes.values())
    routed = resolve(volumes, subtask)
    if routed.skipped is not None:
        return Selection((), skipped=routed.skipped)
    if selector.kind == "clinical" and clinical.unknown_levels(routed):
        return Selection((), skipped="slice_order_unknown")
    pool = routed.volumes if selector.pool == "routed" else _whole_sequences(routed.volumes, volumes)
    borrowed = () if subtask.only_routed else clinical.fallbacks(routed.sources, volumes)
    lent = tuple(volume for volume in borrowed if volume not in pool)
    words = question if selector.plugged else None
    context = PoolContext(selector, structure.study_id, seed, features, words, routed.sources)
    frames = _frames(pool, lent, budget, context)
    flags = {
        "short": len(frames) < budget,
        # no layer of any view at two phases or more
        "no_temporal_evidence": subtask.temporal
        and len({(frame.volume_id, frame.slice) for frame in frames}) == len(frames),
        "levels_unknown": any(
            not volume.levels_known and volume.slice_axis is not None for volume in pool + lent
        ),
    }
    return Selection(frames, (*routed.flags, *(flag for flag, holds in flags.items() if holds)))


@lru_cache(maxsize=1024)
def _frames(pool: Volumes, lent: Volumes, budget: int, context: PoolContext) -> tuple[Frame, ...]:
    volumes = pool + lent
    if context.selector.kind == "clinical":
        frames = clinical.extract(context.sources, volumes, budget)
    else:
        frames = chosen(pool, lent, budget, context)
    in_order = presented(frames, volumes)
    if context.selector.order != "nested":
        return in_order
    return nested(in_order, budget, lambda smaller: _frames(pool, lent, smaller, context))


def _whole_sequences(pool: Volumes, volumes: Volumes) -> Volumes:
    """Return a pool and all other volumes of its sequences, in their listed order."""
    sequences = {volume.sequence for volume in pool}
    by_id = {volume.volume_id: volume for volume in volumes if volume not in pool}
    listed = pool[0].anatomy.sequences.items() if pool else ()
    names = (name for sequence, kind in listed if sequence in sequences for name in kind.volume_ids)
    return pool + tuple(by_id[name] for name in names if name in by_id)
