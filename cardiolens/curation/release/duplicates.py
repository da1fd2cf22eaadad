"""Duplicates that a release would hold: one heart under two patients, or a study of a public set.

They are refused until somebody names them, by a digest of all of them, so one more asks again. A public set
is a folder of its studies, as the import makes it.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.curation.release.release_words import Release
from cardiolens.study.manifest import Study, read_studies
from cardiolens.study.same_pixels import HashedFrames, hashes_of, same_studies

_DIGITS = 16  # of the digest that names duplicates


def check_duplicates(spec: Release, studies: Mapping[str, Study]) -> dict[str, Any]:
    """Return the facts of perceptual hashes; InputError where duplicates are not named."""
    frames = _hashed(studies.values())
    if n_blank := len(studies) - len({study for study, _ in frames.volumes}):
        say(f"{n_blank} studies have no frame with a picture, and are not compared with others")
    patient = {name: study.manifest.patient_id for name, study in studies.items()}
    within = [
        f"{first} and {second}: {count} frames"
        for (first, second), count in sorted(same_studies(frames, frames).items())
        if first < second and patient[first] != patient[second]
    ]
    public = [
        f"{first} and {second} of {folder}: {count} frames"
        for folder in spec.known
        for (first, second), count in sorted(
            same_studies(frames, _hashed(read_studies(folder, "known").values())).items()
        )
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
        "frames": len(frames.volumes),
        "pairs": len(within),
        "known_sets": len(spec.known),
        "known_pairs": len(public),
    }


def _hashed(studies: Iterable[Study]) -> HashedFrames:
    return HashedFrames.of([row for study in studies for row in hashes_of(study)])
