"""Frames that two studies share: one patient under two ids counts twice, and intervals get too narrow."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from cardiolens.base.errors import InputError
from cardiolens.study.cohort import SamePixels
from cardiolens.study.shards import FRAMES_FOLDER, pixel_digest

_COLUMNS = ["study_id", "digest", "height", "width"]
_LEADING = 16  # hexadecimal digits of a digest: 64 bits tell a hundred million frames apart
_GRAYS = 256
_NAMED = 5  # pairs in a message


def same_pixels(store: Path, volumes: pa.Table) -> tuple[SamePixels, ...]:
    """Pairs of studies with frames of equal digest, each study paired with the first that has its frames.

    `volumes` are the rows of `read_volumes`. Frames of one gray value are no evidence: every scanner makes
    black ones, and two studies of one patient count as one in any case. No pixel is read.
    """
    studies = sorted(set(volumes["study_id"].to_pylist()))
    number = {study: at for at, study in enumerate(studies)}
    patient = dict(zip(volumes["study_id"].to_pylist(), volumes["patient_id"].to_pylist(), strict=True))
    digests, owners, sizes = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)], set[tuple[int, int]]()
    for frames in _frames(store, volumes):
        leading = pc.utf8_slice_codeunits(frames["digest"], 0, _LEADING).to_pylist()
        digests.append(np.array([int(digits, 16) for digits in leading], np.uint64))
        owners.append(np.array([number[study] for study in frames["study_id"].to_pylist()], np.int64))
        sizes |= {*zip(frames["height"].to_pylist(), frames["width"].to_pylist(), strict=True)}
    counts = _shared(np.concatenate(digests), np.concatenate(owners), sizes)
    return tuple(
        SamePixels(studies=(studies[first], studies[second]), frames=frames)
        for (first, second), frames in sorted(counts.items())
        if patient[studies[first]] != patient[studies[second]]
    )


def check_same_pixels(pairs: Sequence[SamePixels], *, allowed: bool) -> None:
    """Raise InputError if studies share frames and the configuration does not allow it."""
    if allowed or not pairs:
        return
    named = "; ".join(
        f"{pair.studies[0]} and {pair.studies[1]} ({pair.frames} images)" for pair in pairs[:_NAMED]
    )
    more = f"; and {len(pairs) - _NAMED} more" if len(pairs) > _NAMED else ""
    raise InputError(
        f"the same images stand in two studies: {named}{more}; expected every patient once, since scores "
        "count these as different patients and their intervals get too narrow; remove one of each, or keep "
        "all with dataset.allow_same_pixels=true, and the page says how many"
    )


def _frames(store: Path, volumes: pa.Table) -> Iterator[pa.Table]:
    """The frames of current studies, part by part; a part may hold earlier ones of others."""
    for part in sorted(set(volumes["part"].to_pylist())):
        current = pc.unique(volumes.filter(pc.equal(volumes["part"], part))["study_id"])
        frames = pq.read_table(store / FRAMES_FOLDER / part, columns=_COLUMNS)
        yield frames.filter(pc.is_in(frames["study_id"].cast(pa.string()), value_set=current))


def _shared(
    digests: NDArray[np.uint64], owners: NDArray[np.int64], sizes: Iterable[tuple[int, int]]
) -> Counter[tuple[int, int]]:
    """Number of digests that pairs of studies share, beyond those of frames of one gray value."""
    order = np.lexsort((owners, digests))
    digests, owners = digests[order], owners[order]
    counts: Counter[tuple[int, int]] = Counter()
    if not len(digests):
        return counts
    starts = np.flatnonzero(np.r_[True, digests[1:] != digests[:-1]])
    candidates = [
        (int(digests[start]), sorted(set(owners[start:end].tolist())))
        for start, end in zip(starts, np.r_[starts[1:], len(digests)], strict=True)
        if owners[start] != owners[end - 1]
    ]
    plain = _of_one_gray(sizes) if candidates else frozenset()
    for digest, sharing in candidates:
        if digest not in plain:
            counts.update((sharing[0], other) for other in sharing[1:])
    return counts


def _of_one_gray(sizes: Iterable[tuple[int, int]]) -> frozenset[int]:
    return frozenset(
        int(pixel_digest(bytes([gray]) * (height * width), height, width, 1)[:_LEADING], 16)
        for height, width in sizes
        for gray in range(_GRAYS)
    )
