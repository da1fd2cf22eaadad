"""Weights & Biases as a mirror of what is on disk: one run an arm, grouped by sweep, offline unless asked.

No frame, report text, study id, patient id or question id is given to it.
"""

import logging
import os
from collections.abc import Mapping
from netrc import netrc
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.digest import digest_of
from cardiolens.errors import InputError
from cardiolens.execution_spec import TrackerSpec
from cardiolens.plan.arms import Arm
from cardiolens.plan.plan import Plan

log = logging.getLogger(__name__)


def track(plan: Plan, scores: pa.Table, counters: Mapping[str, Mapping[str, int]]) -> None:
    """Mirror a finished sweep. A tracker that fails is reported and fails nothing: the disk is the record."""
    if plan.spec.tracker.kind == "none":
        return
    import wandb

    try:
        for arm in plan.arms:
            _track_arm(plan, arm, scores.filter(pc.equal(scores["arm_id"], arm.arm_id)), counters)
    except (wandb.Error, OSError) as error:
        log.error("Weights & Biases was not written (%s); every number is in %s", error, plan.run.root)


def check_tracker(tracker: TrackerSpec) -> None:
    """Refuse an online tracker without a key before anything is loaded."""
    if tracker.kind == "none" or tracker.mode == "offline" or os.environ.get("WANDB_API_KEY"):
        return
    try:
        known = netrc().hosts
    except (OSError, ValueError):
        known = {}
    if not any("wandb" in host for host in known):
        raise InputError(
            f"tracker.mode=online for project {tracker.project!r}, but there is no login; run `wandb login`, "
            "set WANDB_API_KEY, or use tracker.mode=offline"
        )


def _track_arm(plan: Plan, arm: Arm, scores: pa.Table, counters: Mapping[str, Mapping[str, int]]) -> None:
    import wandb

    tracker = plan.spec.tracker
    sweep = plan.run.root.name
    run = wandb.init(
        project=tracker.project,
        entity=tracker.entity,
        mode=tracker.mode,
        dir=str(plan.run.root),
        id=digest_of([sweep, arm.arm_id])[:16],
        name=arm.label,
        group=sweep,
        job_type="arm",
        tags=[arm.model.name, arm.selector_name, arm.prompt.name, plan.spec.dataset.name],
        config=_configuration(plan, arm),
        resume="allow" if tracker.mode == "online" else None,
        reinit="create_new",
        settings=_settings(),
    )
    summary = {name: value for row in scores.to_pylist() for name, value in _values(row).items()}
    sweep_counters = {
        f"sweep/{table}/{name}": n for table, part in counters.items() for name, n in part.items()
    }
    run.summary.update({**summary, **sweep_counters})
    run.finish()


def _settings() -> Any:
    """Nothing of the machine, its code or its output: a path or a log line may hold a name."""
    import wandb

    return wandb.Settings(
        console="off",
        silent=True,
        disable_git=True,
        disable_code=True,
        x_disable_stats=True,
        x_disable_machine_info=True,
        x_save_requirements=False,
    )


def _configuration(plan: Plan, arm: Arm) -> dict[str, object]:
    return {
        "experiment": plan.spec.name,
        "protocol": plan.protocol,
        "dataset": plan.spec.dataset.name,
        "studies": len(plan.study_ids),
        "arm_id": arm.arm_id,
        "model": arm.model.name,
        "model_key": plan.identities[arm.model.name].model_key,
        "simulated": arm.model.simulated,
        "selector": arm.selector_name,
        "budget": arm.budget_value,
        "prompt": arm.prompt.name,
        "caption": plan.spec.caption,
        "answer_format": plan.spec.answer_format,
        "control": arm.control,
    }


def _values(row: Mapping[str, Any]) -> dict[str, object]:
    """`tier:1/primary` and its interval and counts, with names that W&B can chart."""
    name = f"{row['scope'].replace(':', '_')}/{row['metric']}"
    if row["versus_arm_id"] is not None:
        return {}
    return {
        name: row["value"],
        f"{name}/low": row["low"],
        f"{name}/high": row["high"],
        f"{name}/n_items": row["n_items"],
        f"{name}/n_patients": row["n_patients"],
    }
