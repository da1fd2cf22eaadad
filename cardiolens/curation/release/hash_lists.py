"""Lists of perceptual hashes, for those who release other studies (protocol 9, stage 6e)."""

import json
from collections.abc import Iterator
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.curation.release.release_words import Hashes
from cardiolens.study.frame_hashes import SIDE, HashedFrames, hashes_of
from cardiolens.study.manifest import MANIFEST_NAME, read_study

_MOST_LIST = 1 << 30  # bytes of a list of hashes


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


def _folders(studies: Path) -> Iterator[Path]:
    return (path.parent for path in sorted(studies.glob(f"*/{MANIFEST_NAME}")))
