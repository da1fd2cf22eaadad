"""Images that stand in two studies: equal pixels, and perceptual hashes of displayed frames."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import imagehash
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from PIL import Image

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.storage import schemas, tables
from cardiolens.study.cohort import SamePixels
from cardiolens.study.group import scale_of
from cardiolens.study.manifest import Study
from cardiolens.study.shards import FRAMES_FOLDER, pixel_digest
from cardiolens.study.volume import read_volume

SIDE = 16  # of the hash: 256 bits
MOST_BITS = 12  # that differ between two hashes of one picture
LEAST_SHARE = 0.5  # of the frames of a volume that another study shows as well
_LEAST_CONTRAST = 8.0  # standard deviation of grey values: frames without a picture are all alike
_CHUNK = 512
Bits = NDArray[np.uint64]  # (frame, 4)


@dataclass(frozen=True, slots=True)
class HashedFrames:
    """The hashes of frames, with the study and the volume that each is of."""

    volumes: tuple[tuple[str, str], ...]
    bits: Bits

    @staticmethod
    def of(rows: Sequence[tuple[str, str, str]]) -> "HashedFrames":
        """Build from study ids, volume ids, and hashes in hexadecimal digits."""
        raw = b"".join(bytes.fromhex(digits) for *_, digits in rows)
        bits = np.frombuffer(raw, np.uint64).reshape(-1, SIDE * SIDE // 64)
        return HashedFrames(tuple((study, volume) for study, volume, _ in rows), bits)


def hash_of(frame: NDArray[np.uint8]) -> str | None:
    """Return the perceptual hash of a displayed frame, in hexadecimal digits; None if it shows nothing."""
    if float(frame.std()) < _LEAST_CONTRAST:
        return None
    return str(imagehash.phash(Image.fromarray(frame), hash_size=SIDE))


def hashes_of(study: Study) -> Iterator[tuple[str, str, str]]:
    """Yield study, volume and hash of the frames of a study: of a series in time, of its first phase."""
    for manifest in study.manifest.volumes:
        volume = read_volume(study.folder, manifest)
        try:
            scale = scale_of(volume, Windows())
        except InputError:
            continue  # without contrast it shows nothing that could be the same
        for stored in volume.grid[:, 0]:
            digits = hash_of(volume.displayed(scale.show(stored)))
            if digits is not None:
                yield study.study_id, manifest.volume_id, digits


def same_studies(first: HashedFrames, second: HashedFrames) -> dict[tuple[str, str], int]:
    """Return the pairs of studies where one shows a volume of the other, with the number of frames.

    A pair is of a study of `first` and one of `second`. The volume may be of either.
    """
    shared: dict[tuple[str, str], dict[tuple[int, str], set[int]]] = defaultdict(lambda: defaultdict(set))
    for start in range(0, len(first.bits), _CHUNK):
        part = first.bits[start : start + _CHUNK]
        distance = np.bitwise_count(part[:, None, :] ^ second.bits[None, :, :]).sum(axis=2, dtype=np.uint16)
        for row, column in np.argwhere(distance <= MOST_BITS).tolist():
            (study, volume), (rival, its_volume) = first.volumes[start + row], second.volumes[column]
            if study != rival:
                shared[study, rival][0, volume].add(start + row)
                shared[study, rival][1, its_volume].add(column)
    sizes = Counter(first.volumes), Counter(second.volumes)
    counts = {pair: [0, 0] for pair in shared}  # of the volumes of either study
    for pair, by_volume in shared.items():
        for (side, volume), same in by_volume.items():
            if len(same) >= LEAST_SHARE * sizes[side][pair[side], volume]:
                counts[pair][side] += len(same)
    return {pair: max(both) for pair, both in counts.items() if any(both)}


_COLUMNS = ["study_id", "digest", "height", "width"]
_NAMED = 5  # pairs in a message


def same_pixels(store: Path, volumes: pa.Table) -> tuple[SamePixels, ...]:
    """Pairs of studies with frames of equal digest, each study paired with the first that has its frames.

    `volumes` are the rows of `read_volumes`. Frames of one gray value are no evidence: every scanner makes
    black ones, and two studies of one patient count as one in any case. No pixel is read.
    """
    patient = dict(zip(volumes["study_id"].to_pylist(), volumes["patient_id"].to_pylist(), strict=True))
    parts = sorted(set(volumes["part"].to_pylist()))
    if not parts:
        return ()
    current = pa.concat_tables(_frames(store, volumes, part) for part in parts)
    owners = current.group_by(["digest", "height", "width"]).aggregate([("study_id", "distinct")])
    shared = owners.filter(pc.greater(pc.list_value_length(owners["study_id_distinct"]), 1))
    sizes = {(row["height"], row["width"]) for row in shared.to_pylist()}
    plain = {
        pixel_digest(bytes([gray]) * (height * width), height, width, 1)
        for height, width in sizes
        for gray in range(256)
    }
    counts: Counter[tuple[str, str]] = Counter()
    for row in shared.to_pylist():
        first, *others = sorted(row["study_id_distinct"])
        if row["digest"] not in plain:
            counts.update((first, other) for other in others if patient[first] != patient[other])
    return tuple(SamePixels(studies=pair, frames=frames) for pair, frames in sorted(counts.items()))


def _frames(store: Path, volumes: pa.Table, part: str) -> pa.Table:
    """The frames of the current studies of a part, which may hold earlier ones of others."""
    current = pc.unique(volumes.filter(pc.equal(volumes["part"], part))["study_id"])
    frames = tables.read_part(store / FRAMES_FOLDER / part, schemas.FRAMES, _COLUMNS)
    return frames.filter(pc.is_in(frames["study_id"], value_set=current))


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
        "all with dataset.allow=[same_pixels], and the page says how many"
    )
