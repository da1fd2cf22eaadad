"""One door to all selectors: a study's structure, a route and a budget give frames to show.

No selector can see a label, a mask, a report or a patient: what they are given does not hold any.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from cardiolens.errors import InputError
from cardiolens.select import clinical, hashed
from cardiolens.select.cine import SmallK
from cardiolens.select.order import presented
from cardiolens.select.route import Route, Routed, Volumes, resolve
from cardiolens.select.rules import rules
from cardiolens.select.selection import Frame, Selection
from cardiolens.spec import SelectorSpec
from cardiolens.study.structure import StudyStructure


@dataclass(frozen=True, slots=True)
class Draw:
    """What a random draw depends on besides the volumes."""

    seed: int
    study_id: str
    pool: Literal["routed", "sequence"]


def choose(
    selector: SelectorSpec, seed: int | None, structure: StudyStructure, route: Route, budget: int
) -> Selection:
    """The frames that a selector shows for a subtask, at most `budget`; `seed` is a random selector's."""
    if budget < 1:
        raise InputError(f"budget {budget} is not a number of frames; give 1 or more, e.g. 16")
    volumes = tuple(structure.volumes.values())
    if selector.kind == "random":
        if seed is None:
            raise InputError(f"selector {selector.name!r} is random and needs a seed, e.g. seeds=[2026]")
        draw = Draw(seed, structure.study_id, selector.pool)
        return _random(volumes, route, budget, draw)
    return _clinical(volumes, route, budget, selector.lax_small_k)


@lru_cache(maxsize=1024)
def _clinical(volumes: Volumes, route: Route, budget: int, small_k: SmallK) -> Selection:
    routed = resolve(volumes, route)
    if routed.skipped is None and clinical.unknown_levels(routed):
        return Selection((), skipped="slice_order_unknown")
    frames = clinical.extract(routed.sources, volumes, budget, small_k)
    shown = routed.volumes + clinical.fallbacks(routed.sources, volumes)
    return _selection(frames, shown, routed, route, budget)


@lru_cache(maxsize=1024)
def _random(volumes: Volumes, route: Route, budget: int, draw: Draw) -> Selection:
    routed = resolve(volumes, route)
    pool = routed.volumes if draw.pool == "routed" else _whole_sequences(routed.volumes, volumes)
    frames = hashed.drawn(draw.seed, draw.study_id, pool, budget)
    return _selection(frames, pool, routed, route, budget)


def _whole_sequences(pool: Volumes, volumes: Volumes) -> Volumes:
    """A pool and all other volumes of its sequences, in their listed order."""
    sequences = {volume.sequence for volume in pool}
    by_id = {volume.volume_id: volume for volume in volumes if volume not in pool}
    listed = (view for sequence, views in rules().views.items() if sequence in sequences for view in views)
    return pool + tuple(by_id[view] for view in listed if view in by_id)


def _selection(
    frames: Iterable[Frame], shown: Volumes, routed: Routed, route: Route, budget: int
) -> Selection:
    if routed.skipped is not None:
        return Selection((), skipped=routed.skipped)
    ordered = presented(frames, shown)
    known = {
        volume.volume_id: volume.levels_known or not volume.volume_id.endswith("_sax") for volume in shown
    }
    noted = {
        "short": len(ordered) < budget,
        "no_temporal_evidence": route.temporal and not _shows_motion(ordered),
        "levels_unknown": not all(known[frame.volume_id] for frame in ordered),
    }
    return Selection(ordered, (*routed.flags, *(flag for flag, holds in noted.items() if holds)))


def _shows_motion(frames: Iterable[Frame]) -> bool:
    """Whether some layer of some view is shown at two phases or more."""
    return max(Counter((frame.volume_id, frame.slice) for frame in frames).values(), default=0) > 1
