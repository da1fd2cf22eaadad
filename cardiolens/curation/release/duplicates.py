"""Duplicates that a release would hold: one heart under two patients, or a study of a public set.

They are refused until somebody names them, by a digest of all of them, so one more asks again.
"""

from collections.abc import Mapping
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.curation.release.hash_lists import read_hashes
from cardiolens.curation.release.release_words import Release
from cardiolens.study.frame_hashes import HashedFrames, hashes_of, same_studies
from cardiolens.study.manifest import Study

_DIGITS = 16  # of the digest that names duplicates


def check_duplicates(spec: Release, studies: Mapping[str, Study]) -> dict[str, Any]:
    """Return the facts of perceptual hashes; InputError where duplicates are not named."""
    ours = _hashed(studies)
    patient = {name: study.manifest.patient_id for name, study in studies.items()}
    within = {
        (first, second): frames
        for (first, second), frames in same_studies(ours, ours).items()
        if first < second and patient[first] != patient[second]
    }
    public = {
        (first, second, path.name): frames
        for path in spec.known
        for (first, second), frames in same_studies(ours, read_hashes(path)).items()
    }
    lines = [f"{first} and {second}: {frames} frames" for (first, second), frames in sorted(within.items())]
    lines += [
        f"{first} and {second} of {name}: {frames} frames"
        for (first, second, name), frames in sorted(public.items())
    ]
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


def _hashed(studies: Mapping[str, Study]) -> HashedFrames:
    rows = [row for study in studies.values() for row in hashes_of(study)]
    if n_blank := len(studies) - len({study for study, *_ in rows}):
        say(f"{n_blank} studies have no frame with a picture, and are not compared with others")
    return HashedFrames.of(rows)
