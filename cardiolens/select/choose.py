"""One door to all selectors: a study's structure, a route and a budget give frames to show.

No selector can see a label, a mask, a report or a patient: what they are given does not hold any.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Literal

from cardiolens.errors import InputError
from cardiolens.select import clinical, hashed
from cardiolens.select.cine import SmallK
from cardiolens.select.order import presented
from cardiolens.select.route import Route, Source, Volumes, resolve
from cardiolens.select.rules import rules
from cardiolens.select.selection import Frame, Selection
from cardiolens.spec import SelectorSpec
from cardiolens.study.structure import StudyStructure

Pool = Literal["routed", "sequence"]


def choose(
    selector: SelectorSpec, seed: int | None, structure: StudyStructure, route: Route, budget: int
) -> Selection:
    """The frames that a selector shows for a subtask, at most `budget`; `seed` is a random selector's.

    Subtasks with the same sources share one tuple of frames.
    """
    if budget < 1:
        raise InputError(f"budget {budget} is not a number of frames; give 1 or more, e.g. 16")
    volumes = tuple(structure.volumes.values())
    if selector.kind == "clinical":
        return _clinical(volumes, route, budget, selector.lax_small_k)
    if seed is None:
        raise InputError(f"selector {selector.name!r} is random and needs a seed, e.g. seeds: [2026]")
    return _random(volumes, route, budget, selector.pool, (seed, structure.study_id))


@lru_cache(maxsize=1024)
def _clinical(volumes: Volumes, route: Route, budget: int, small_k: SmallK) -> Selection:
    routed = resolve(volumes, route)
    if routed.skipped is not None:
        return Selection((), skipped=routed.skipped)
    if clinical.unknown_levels(routed):
        return Selection((), skipped="slice_order_unknown")
    shown = routed.volumes + clinical.fallbacks(routed.sources, volumes)
    frames = _extracted(routed.sources, shown, budget, small_k)
    return Selection(frames, routed.flags + _flags(frames, shown, route, budget))


@lru_cache(maxsize=1024)
def _random(volumes: Volumes, route: Route, budget: int, pool: Pool, draw: tuple[int, str]) -> Selection:
    routed = resolve(volumes, route)
    if routed.skipped is not None:
        return Selection((), skipped=routed.skipped)
    shown = routed.volumes if pool == "routed" else _whole_sequences(routed.volumes, volumes)
    frames = _drawn(shown, budget, *draw)
    return Selection(frames, routed.flags + _flags(frames, shown, route, budget))


@lru_cache(maxsize=1024)
def _extracted(
    sources: tuple[Source, ...], shown: Volumes, budget: int, small_k: SmallK
) -> tuple[Frame, ...]:
    return presented(clinical.extract(sources, shown, budget, small_k), shown)


@lru_cache(maxsize=1024)
def _drawn(shown: Volumes, budget: int, seed: int, study_id: str) -> tuple[Frame, ...]:
    return presented(hashed.drawn(seed, study_id, shown, budget), shown)


def _whole_sequences(pool: Volumes, volumes: Volumes) -> Volumes:
    """A pool and all other volumes of its sequences, in their listed order."""
    sequences = {volume.sequence for volume in pool}
    by_id = {volume.volume_id: volume for volume in volumes if volume not in pool}
    listed = (view for sequence, views in rules().views.items() if sequence in sequences for view in views)
    return pool + tuple(by_id[view] for view in listed if view in by_id)


def _flags(frames: Sequence[Frame], shown: Volumes, route: Route, budget: int) -> tuple[str, ...]:
    """What must be known of the frames chosen."""
    noted = {
        "short": len(frames) < budget,
        "no_temporal_evidence": route.temporal and not _shows_motion(frames),
        "levels_unknown": any(not v.levels_known and v.view == "sax" for v in shown),
    }
    return tuple(flag for flag, holds in noted.items() if holds)


def _shows_motion(frames: Iterable[Frame]) -> bool:
    """Whether some layer of some view is shown at two phases or more."""
    layers = [(frame.volume_id, frame.slice) for frame in frames]
    return len(set(layers)) < len(layers)
