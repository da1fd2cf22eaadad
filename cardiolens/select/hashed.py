"""The random selector: frames ranked by a hash that any language can repeat (specification 6)."""

from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from heapq import merge
from itertools import islice

from cardiolens.select.route import Volumes
from cardiolens.select.selection import Frame, pick_idx

_Ranked = tuple[tuple[bytes, int], ...]


def drawn(seed: int, study_id: str, pool: Volumes, budget: int) -> list[Frame]:
    """The `budget` first frames of a pool in hash order, so that draws are nested in the budget."""
    ranked = (_ranked(seed, study_id, volume.volume_id, volume.n_frames) for volume in pool)
    hands = [_placed(place, hand) for place, hand in enumerate(ranked)]
    return [pick_idx(pool[place], [idx])[0] for _, place, idx in islice(merge(*hands), budget)]


def _placed(place: int, ranked: _Ranked) -> Iterator[tuple[bytes, int, int]]:
    return ((digest, place, idx) for digest, idx in ranked)


@lru_cache(maxsize=256)
def _ranked(seed: int, study_id: str, volume_id: str, n_frames: int) -> _Ranked:
    """Digests of `seed|study_id|volume|idx` with their canonical index, smallest first."""
    prefix = sha256(f"{seed}|{study_id}|{volume_id}|".encode())
    ranked = []
    for idx in range(n_frames):
        digest = prefix.copy()
        digest.update(str(idx).encode())
        ranked.append((digest.digest(), idx))
    return tuple(sorted(ranked))
