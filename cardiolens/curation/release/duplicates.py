"""Duplicates that a release would hold: one heart under two patients.

They are refused until somebody names them, by a digest of all of them, so one more asks again.
"""

from collections.abc import Mapping
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.curation.release.release_words import Release
from cardiolens.study.manifest import Study
from cardiolens.study.same_pixels import HashedFrames, hashes_of, same_studies

_DIGITS = 16  # of the digest that names duplicates


def check_duplicates(spec: Release, studies: Mapping[str, Study]) -> dict[str, Any]:
    """Return the facts of perceptual hashes; InputError where duplicates are not named."""
    rows = [row for study in studies.values() for row in hashes_of(study)]
    if n_blank := len(studies) - len({study for study, *_ in rows}):
        say(f"{n_blank} studies have no frame with a picture, and are not compared with others")
    frames = HashedFrames.of(rows)
    patient = {name: study.manifest.patient_id for name, study in studies.items()}
    lines = [
        f"{first} and {second}: {count} frames"
        for (first, second), count in sorted(same_studies(frames, frames).items())
        if first < second and patient[first] != patient[second]
    ]
    if lines and (digest := digest_of(lines)[:_DIGITS]) != spec.duplicates:
        report = spec.out.with_name(f"{spec.out.name}-duplicates.txt")
        disk.write_text(report, "".join(f"{line}\n" for line in lines))
        raise InputError(
            f"{len(lines)} pairs of studies of several patients show the same pictures; {report} has them; "
            f"leave one of each out, or, if that is as it should be, add duplicates={digest}"
        )
    return {"frames": len(rows), "pairs": len(lines)}
