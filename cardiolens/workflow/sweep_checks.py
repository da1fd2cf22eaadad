"""What a sweep needs before anything is loaded: one list, for sweep, submit and doctor."""

from collections.abc import Callable
from hashlib import sha256

from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.http.transport import check_access
from cardiolens.inference.engine.readers import check_readers
from cardiolens.inference.engine.startup import check_engine_options
from cardiolens.inference.models.identity import unseparated
from cardiolens.inference.plan.candidates import at_hand
from cardiolens.inference.plan.frame_views import check_plugins
from cardiolens.score.verdicts.text_metrics import open_text_metrics
from cardiolens.show.tracker.wandb_runs import check_tracker


def check_release(spec: SweepSpec) -> None:
    """InputError where questions or studies are not those of the release that the sweep names.

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
    if "absent_studies" not in dataset.allow and dataset.studies.resolve() != beside.resolve():
        raise InputError(
            f"dataset.studies={dataset.studies}: are not the studies of {release}; leave the option out, or "
            "ask about studies of your own with dataset=real"
        )


CHECKS: dict[str, Callable[[SweepSpec], object]] = {
    "release": check_release,
    "tracker": lambda spec: check_tracker(spec.tracker),
    "readers": check_readers,
    "other packages": check_plugins,
    "servers": check_access,
    "vLLM options": check_engine_options,
    "report metrics": lambda spec: open_text_metrics(spec.statistics),
}
"""What is checked of a configuration, by subject; InputError or RunError says what to correct."""


def check_sweep(spec: SweepSpec) -> tuple[SweepSpec, dict[str, str]]:
    """Return the sweep with its models on this machine, and why others are left out, if every check holds.

    InputError or RunError for the first fault; warnings are printed.
    """
    spec, absent = at_hand(spec)
    for model, why in absent.items():
        say(f"left out: {model}: {why}")
    for check in CHECKS.values():
        check(spec)
    for warning in unseparated(spec):
        say(f"check: {warning}")
    return spec, absent
