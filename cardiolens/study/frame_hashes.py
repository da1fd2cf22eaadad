"""Perceptual hashes of frames (protocol 9, stage 6e): the same picture in another file, window or size."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import Windows
from cardiolens.study.manifest import Study
from cardiolens.study.volume import read_volume
from cardiolens.study.windowing import grey_scale

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
        window = Windows().of(manifest.sequence, manifest.volume_id)
        try:
            scale = grey_scale(
                volume.in_file_order, window, volume.slope, volume.inter, window=manifest.window
            )
        except InputError:
            continue  # without contrast it shows nothing that could be the same
        for place in range(0, len(volume.file_frames), volume.layout.n_phases):
            digits = hash_of(volume.displayed(scale.show(volume.stored(place))))
            if digits is not None:
                yield study.study_id, manifest.volume_id, digits


def same_studies(first: HashedFrames, second: HashedFrames) -> dict[tuple[str, str], int]:
    """Return the pairs of studies of which one shows a volume of the other, with the number of frames."""
    frames: dict[tuple[str, str], dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for start in range(0, len(first.bits), _CHUNK):
        part = first.bits[start : start + _CHUNK]
        distance = np.bitwise_count(part[:, None, :] ^ second.bits[None, :, :]).sum(axis=2, dtype=np.uint16)
        for row, column in np.argwhere(distance <= MOST_BITS).tolist():
            (study, volume), (rival, _) = first.volumes[start + row], second.volumes[column]
            if study != rival:
                frames[study, rival][volume].add(start + row)
    sizes = Counter(first.volumes)
    pairs = {
        pair: sum(
            len(same) for volume, same in of_pair.items() if len(same) >= LEAST_SHARE * sizes[pair[0], volume]
        )
        for pair, of_pair in frames.items()
    }
    return {pair: count for pair, count in pairs.items() if count}
