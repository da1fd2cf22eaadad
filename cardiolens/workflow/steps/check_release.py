"""The check, as a sweep begins, that a released benchmark asks the questions that it was released with."""

from hashlib import sha256

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.sweep import SweepSpec


def check_release(spec: SweepSpec) -> None:
    """Raise InputError where questions or studies are not those of the release that the sweep names.

    Of the studies only the place is checked; `cardiolens release verify=` reads all of them.
    """
    release, dataset = spec.dataset.release, spec.dataset
    if release is None:
        return
    try:
        found = sha256(read_bytes(dataset.questions)).hexdigest()
    except OSError as error:
        raise InputError(
            f"{dataset.questions}: cannot be read ({error.strerror}); get the release anew"
        ) from None
    if found != release.questions_sha256:
        raise InputError(
            f"{dataset.questions}: is not the file of {release}, which lists it with SHA-256 "
            f"{release.questions_sha256}, and it has {found}; get the release anew, or ask questions of your "
            "own with dataset=real"
        )
    beside = dataset.questions.parent / "studies"
    if not dataset.prepared_only and dataset.studies.resolve() != beside.resolve():
        raise InputError(
            f"dataset.studies={dataset.studies}: are not the studies of {release}; leave the option out, or "
            "ask about studies of your own with dataset=real"
        )
