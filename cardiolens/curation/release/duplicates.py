"""Duplicates that a release would hold: one heart under two patients, or a study of a public set.

They are refused until somebody names them, by a digest of all of them, so one more asks again. A public set
comes as a list of perceptual hashes, which `hashes=` writes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.curation.release.release_words import Hashes, Release
from cardiolens.study.manifest import MANIFEST_NAME, Study, read_study
from cardiolens.study.same_pixels import SIDE, HashedFrames, hashes_of, same_studies

_DIGITS = 16  # of the digest that names duplicates
_MOST_LIST = 1 << 30  # bytes of a list of hashes
_COLUMNS = ("study", "volume", "phash")


def check_duplicates(spec: Release, studies: Mapping[str, Study]) -> dict[str, Any]:
    """Return the facts of perceptual hashes; InputError where duplicates are not named."""
    rows = [row for study in studies.values() for row in hashes_of(study)]
    if n_blank := len(studies) - len({study for study, *_ in rows}):
        say(f"{n_blank} studies have no frame with a picture, and are not compared with others")
    ours = HashedFrames.of(rows)
    patient = {name: study.manifest.patient_id for name, study in studies.items()}
    within = [
        f"{first} and {second}: {frames} frames"
        for (first, second), frames in sorted(same_studies(ours, ours).items())
        if first < second and patient[first] != patient[second]
    ]
    public = [
        f"{first} and {second} of {path.name}: {frames} frames"
        for path in spec.known
        for (first, second), frames in sorted(same_studies(ours, read_hashes(path)).items())
    ]
    lines = within + public
    if lines and (digest := digest_of(lines)[:_DIGITS]) != spec.duplicates:
        report = spec.out.with_name(f"{spec.out.name}-duplicates.txt")
        disk.write_text(report, "".join(f"{line}\n" for line in lines))
        raise InputError(
            f"{len(within)} pairs of studies of several patients show the same pictures, and {len(public)} a "
            f"study of a public set; {report} has them; leave one of each out, or, if that is as it should "
            f"be, add duplicates={digest}"
        )
    return {
        "frames": len(ours.volumes),
        "pairs": len(within),
        "known_lists": len(spec.known),
        "known_pairs": len(public),
    }


def write_hashes(spec: Hashes) -> int:
    """Write the list of hashes of a folder of studies, for those who release others; return 0."""
    chosen = [read_study(path.parent) for path in sorted(spec.hashes.glob(f"*/{MANIFEST_NAME}"))]
    if not chosen:
        raise InputError(f"hashes={spec.hashes}: holds no study; expected <folder>/{MANIFEST_NAME}")
    rows = [row for study in chosen for row in hashes_of(study)]
    lines = (json.dumps(dict(zip(_COLUMNS, row, strict=True))) + "\n" for row in rows)
    disk.write_text(spec.out, "".join(lines))
    say(f"hashes: {len(rows)} frames of {len(chosen)} studies: {spec.out}")
    return 0


def read_hashes(path: Path) -> HashedFrames:
    """Read a list of hashes; InputError names the line that is none."""
    try:
        lines = read_text(path, _MOST_LIST).splitlines()
    except (OSError, ValueError) as error:
        raise InputError(
            f"known={path}: cannot be read ({type(error).__name__}); expected JSON Lines"
        ) from None
    return HashedFrames.of([_hash(line, f"known={path} line {at}") for at, line in enumerate(lines, start=1)])


def _hash(line: str, where: str) -> tuple[str, str, str]:
    try:
        record = parse_json(line)
        study, volume, digits = (str(record[name]) for name in _COLUMNS)
        is_hash = len(bytes.fromhex(digits)) == SIDE * SIDE // 8
    except (ValueError, KeyError, TypeError):
        is_hash = False
    if not is_hash:
        raise InputError(
            f"{where}: is no hash; expected study, volume, and phash of {SIDE * SIDE // 4} hexadecimal "
            "digits, as cardiolens release hashes=... out=... writes them"
        )
    return study, volume, digits
