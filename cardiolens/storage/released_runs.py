"""The release that a run asked, as its manifest has it; runs of different releases are not ranked."""

from collections.abc import Mapping, Sequence
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.config.release_identity import ReleaseSpec
from cardiolens.storage.places import Run


def release_of(manifest: Mapping[str, Any]) -> ReleaseSpec | None:
    """Return the release that a run asked; None if it asked other questions."""
    told = manifest.get("release")
    return None if told is None else ReleaseSpec.model_validate(told)


def check_one_release(runs: Sequence[Run], manifests: Sequence[Mapping[str, Any]]) -> None:
    """Raise InputError, with both digests, for runs of several releases or several versions of one."""
    first, *others = [release_of(manifest) for manifest in manifests]
    for run, other in zip(runs[1:], others, strict=True):
        if other != first:
            raise InputError(
                f"{run.root}: asked {_told(other)}, but {runs[0].root} asked {_told(first)}; runs are ranked "
                "within one version of one release; run both on the same"
            )


def _told(release: ReleaseSpec | None) -> str:
    return "no release" if release is None else str(release)
