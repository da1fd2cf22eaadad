"""Perceptual hashes of frames (protocol 9, stage 6e): the same picture in another file, window or size."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import imagehash
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.config.dataset import Windows
from cardiolens.curation.release.release_words import Hashes
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_study
from cardiolens.study.volume import read_volume
from cardiolens.study.windowing import grey_scale

SIDE = 16  # of the hash: 256 bits
MOST_BITS = 12  # that differ between two hashes of one picture
LEAST_SHARE = 0.5  # of the frames of a volume that another study shows as well
_LEAST_CONTRAST = 8.0  # standard deviation of grey values: frames without a picture are all alike
_CHUNK = 512
_MOST_LIST = 1 << 30  # bytes of a list of hashes
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


def hashed(studies: Mapping[str, Study]) -> HashedFrames:
    """Return the hashes of all frames of studies."""
    rows = [row for study in studies.values() for row in hashes_of(study)]
    if n_blank := len(studies) - len({study for study, *_ in rows}):
        say(f"{n_blank} studies have no frame with a picture, and are not compared with others")
    return HashedFrames.of(rows)


def write_hashes(spec: Hashes) -> int:
    """Write the list of hashes of a folder of studies, for those who release others; return 0."""
    studies, out = spec.hashes, spec.out
    chosen = [read_study(folder) for folder in _folders(studies)]
    if not chosen:
        raise InputError(f"hashes={studies}: holds no study; expected <folder>/{MANIFEST_NAME}")
    rows = [row for study in chosen for row in hashes_of(study)]
    names = ("study", "volume", "phash")
    lines = (json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows)
    disk.write_text(out, "".join(lines))
    say(f"hashes: {len(rows)} frames of {len(chosen)} studies: {out}")
    return 0


def read_hashes(path: Path) -> HashedFrames:
    """Read a list of hashes; InputError names the line that is none."""
    rows: list[tuple[str, str, str]] = []
    try:
        lines = read_text(path, _MOST_LIST).splitlines()
    except (OSError, ValueError) as error:
        raise InputError(
            f"known={path}: cannot be read ({type(error).__name__}); expected JSON Lines"
        ) from None
    for number, line in enumerate(lines, start=1):
        try:
            record = parse_json(line)
            study, volume, digits = (str(record[name]) for name in ("study", "volume", "phash"))
            is_hash = len(bytes.fromhex(digits)) == SIDE * SIDE // 8
        except (ValueError, KeyError, TypeError):
            is_hash = False
        if not is_hash:
            raise InputError(
                f"known={path} line {number}: is no hash; expected study, volume, and phash of "
                f"{SIDE * SIDE // 4} hexadecimal digits, as cardiolens release hashes=... out=... writes them"
            )
        rows.append((study, volume, digits))
    return HashedFrames.of(rows)


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


def _folders(studies: Path) -> Iterator[Path]:
    return (path.parent for path in sorted(studies.glob(f"*/{MANIFEST_NAME}")))
