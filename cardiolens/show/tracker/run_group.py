"""The runs of a sweep in the tracker that its configuration names."""

import os
from netrc import netrc

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec, TrackerSpec
from cardiolens.show.tracker.tracked_run import RunGroup
from cardiolens.show.tracker.wandb_runs import WandbGroup
from cardiolens.storage.places import Run


def open_group(run: Run, spec: SweepSpec, tracker: TrackerSpec, *, protocol: str, studies: int) -> RunGroup:
    """The runs of a sweep; each is configured with the number of the sweep's studies."""
    config: dict[str, object] = {
        "experiment": spec.name,
        "protocol": protocol,
        "dataset": spec.dataset.name,
        "studies": studies,
    }
    return WandbGroup(run.root, tracker, config)


def check_tracker(tracker: TrackerSpec) -> None:
    """Raise InputError where W&B is to be written online without a login."""
    if tracker.kind == "none" or tracker.mode == "offline" or os.environ.get("WANDB_API_KEY"):
        return
    try:
        hosts = netrc().hosts
    except (OSError, ValueError):
        hosts = {}
    if not any("wandb" in host for host in hosts):
        raise InputError(
            f"tracker.mode=online for project {tracker.project!r}, but there is no login; run `wandb login`, "
            "set WANDB_API_KEY, or use tracker.mode=offline"
        )
