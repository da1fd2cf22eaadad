"""The random selector: frames ranked by a hash that any language can reproduce (protocol 6)."""

from functools import lru_cache
from hashlib import sha256

from cardiolens.protocol.select.route import Volumes
from cardiolens.protocol.select.selection import Frame, pick_idx

_Digests = tuple[tuple[bytes, int], ...]


def first_by_hash(seed: int, study_id: str, pool: Volumes, budget: int) -> list[Frame]:
    """Return the first `budget` frames of a pool in hash order; smaller budgets are subsets of larger."""
    return [pick_idx(pool[place], idx) for place, idx in _ranked(seed, study_id, pool)[:budget]]


@lru_cache(maxsize=64)
def _ranked(seed: int, study_id: str, pool: Volumes) -> tuple[tuple[int, int], ...]:
    """Return every frame of a pool as (position of its volume, canonical index), in hash order."""
    ranked = sorted(
        (digest, place, idx)
        for place, volume in enumerate(pool)
        for digest, idx in _digests(seed, study_id, volume.volume_id, volume.n_frames)
    )
    return tuple((place, idx) for _, place, idx in ranked)


@lru_cache(maxsize=64)
def _digests(seed: int, study_id: str, volume_id: str, n_frames: int) -> _Digests:
    """Return SHA-256 of `seed|study_id|volume|idx` for every frame of a volume, with its index."""
    prefix = sha256(f"{seed}|{study_id}|{volume_id}|".encode())
    digests = []
    for idx in range(n_frames):
        digest = prefix.copy()
        digest.update(b"%d" % idx)
        digests.append((digest.digest(), idx))
    return tuple(digests)
