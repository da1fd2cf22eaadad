"""Selectors of other packages: entry points of `cardiolens.selectors` (docs/how-to/plugins.md)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

from cardiolens.base.digest import digest_of
from cardiolens.base.entry_points import PluginError, blamed, make
from cardiolens.config.plugin_words import Options
from cardiolens.protocol.select.route import Volumes
from cardiolens.protocol.select.selection import Frame, pick_idx

if TYPE_CHECKING:
    from cardiolens.protocol.select.pool_selectors import PoolContext


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
    selector = open_selector(context.kind, context.options)
    seed = None if context.seed is None else int(digest_of([context.seed, context.study_id])[:8], 16)
    with blamed(context.kind):
        picked = [
            (str(volume_id), int(idx))
            for volume_id, idx in selector.select(pool, budget, seed=seed, question=context.question or "")
        ]
    for problem in _problems(picked, pool, budget):
        raise PluginError(f"plugin {context.kind}: {problem}; its maker must correct it")
    by_id = {volume.volume_id: volume for volume in pool}
    return [pick_idx(by_id[volume_id], idx) for volume_id, idx in picked]


def _problems(picked: Sequence[tuple[str, int]], pool: Volumes, budget: int) -> Iterable[str]:
    n_frames = {volume.volume_id: volume.n_frames for volume in pool}
    for volume_id, idx in picked:
        if not 0 <= idx < n_frames.get(volume_id, 0):
            offered = ", ".join(f"{name} 0..{number - 1}" for name, number in n_frames.items())
            yield f"chose frame {idx} of {volume_id!r}, which is not in the pool ({offered})"
    for place, times in Counter(picked).items():
        if times > 1:
            yield f"chose frame {place[1]} of {place[0]} {times} times"
    if len(picked) > budget:
        yield f"chose {len(picked)} frames of a budget of {budget}"
