"""Mirror of a judged run in Weights & Biases: one run of W&B for the sweep, and one per arm."""

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from netrc import netrc
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.errors import InputError
from cardiolens.base.sanitize import one_line
from cardiolens.config.arms import Arm, arms
from cardiolens.config.steps import TrackerSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.show.tracker.live import mirror_progress
from cardiolens.show.tracker.session import WandbGroup
from cardiolens.show.tracker.tracked_progress import read_rows
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run

log = logging.getLogger(__name__)

_COUNTERS = ("requests", "frames", "tokens")  # counters of the manifest
_SCORE_COLUMNS = ("arm_id", "metric", "scope", "value", "low", "high", "n_items", "n_patients", "method")


@dataclass(frozen=True, slots=True)
class _JudgedRun:
    """A judged run and its W&B group."""

    run: Run
    spec: SweepSpec
    manifest: Mapping[str, Any]
    scores: pa.Table  # of single arms: _SCORE_COLUMNS
    group: WandbGroup


def track(run: Run, tracker: TrackerSpec, *, progress: bool = False) -> bool:
    """Mirror a judged run; False if the tracker failed.

    With `progress`, mirror the progress of the models too; during a sweep W&B got it while they ran. A
    failure is logged and raises nothing: the disk is the record.
    """
    if tracker.kind == "none":
        return True
    import wandb

    spec, manifest = documents.read_configuration(run), documents.read_manifest(run)
    group = WandbGroup.of(run, spec, tracker, manifest["protocol"], manifest["studies"])
    of_arms = pc.is_null(pc.field("versus_arm_id"))  # differences, which are most rows, are not mirrored
    scores = tables.query(run.scores, schemas.SCORES, _SCORE_COLUMNS, of_arms)
    judged_run = _JudgedRun(run, spec, manifest, scores, group)
    try:
        with _staging(tracker):
            _track_sweep(judged_run)
        for arm in arms(spec):
            if arm.model.name in manifest["models"]:  # not one that could not be planned
                _track_arm(judged_run, arm)
        for model in spec.model if progress else ():
            if rows := read_rows(run.progress(model.name)):
                mirror_progress(group, model.name, rows)
    except Exception as error:  # noqa: BLE001 - whatever a server said, the sweep is done and on the disk
        log.error(
            "Weights & Biases was not written (%s); every number is in %s",
            one_line(str(error), 400),
            run.root,
        )
        with suppress(Exception):  # at the end of the process it would be a traceback
            wandb.teardown(1)
        return False
    return True


@contextmanager
def _staging(tracker: TrackerSpec) -> Iterator[None]:
    """Let W&B stage tables in a temporary folder, because online it sends the staging path to the server.

    Offline the folder must last until `wandb sync`, so it stays W&B's.
    """
    if tracker.mode == "offline" or "WANDB_DATA_DIR" in os.environ:
        yield
        return
    with TemporaryDirectory(prefix="wandb-") as folder:
        os.environ["WANDB_DATA_DIR"] = folder
        try:
            yield
        finally:
            del os.environ["WANDB_DATA_DIR"]


def check_tracker(tracker: TrackerSpec) -> None:
    """Raise InputError for an online tracker without a login, before anything is loaded."""
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


def _track_sweep(judged_run: _JudgedRun) -> None:
    """Write the counters of the sweep, and tables of scores and confusions."""
    import wandb

    with judged_run.group.writing("sweep", tags=["sweep"]) as run:
        run.summary.update(_counters(judged_run.manifest))
        rows = zip(*(judged_run.scores[name].to_pylist() for name in _SCORE_COLUMNS), strict=True)
        run.log({"scores": wandb.Table(columns=list(_SCORE_COLUMNS), data=[list(row) for row in rows])})
        run.log({"confusion": wandb.Table(columns=list(_CONFUSION_COLUMNS), data=_confusion(judged_run.run))})


def _track_arm(judged_run: _JudgedRun, arm: Arm) -> None:
    """Write the options and scores of one arm."""
    scores = judged_run.scores.filter(pc.equal(judged_run.scores["arm_id"], arm.arm_id))
    tags = [arm.model.name, arm.selector_name, arm.prompt.name, judged_run.spec.dataset.name]
    options = _options(judged_run, arm)
    with judged_run.group.writing("arm", arm.label, key=[arm.arm_id], tags=tags, config=options) as run:
        run.summary.update(
            {name: value for row in scores.to_pylist() for name, value in _values(row).items()}
        )


def _options(judged_run: _JudgedRun, arm: Arm) -> dict[str, object]:
    return {
        "arm_id": arm.arm_id,
        "model": arm.model.name,
        "model_key": judged_run.manifest["models"][arm.model.name]["model_key"],
        "simulated": arm.model.simulated,
        "selector": arm.selector_name,
        "budget": arm.budget_value,
        "prompt": arm.prompt.name,
        "caption": judged_run.spec.caption,
        "answer_format": judged_run.spec.answer_format,
        "control": arm.control,
        "wording": arm.wording,
    }


def _counters(manifest: Mapping[str, Any]) -> dict[str, object]:
    """Counters of a manifest under names such as `sweep/requests/executed`."""
    return {f"sweep/{part}/{name}": n for part in _COUNTERS for name, n in manifest[part].items()}


_SEPARATOR = "\x1f"  # several answers
_CONFUSION_COLUMNS = ("arm_id", "subtask", "gold", "answered", "n")


def _confusion(run: Run) -> list[list[object]]:
    """Counts of (gold, answered) options, over questions with one right option, as _CONFUSION_COLUMNS."""
    one_right = pc.is_in(pc.field("answer_type"), pa.array(["single", "ordinal"]))
    condition = one_right & (pc.field("status") == "judged")
    counts: Counter[tuple[str, str, str, str]] = Counter()
    for batch in tables.scan(
        run.verdicts, schemas.VERDICTS, ("arm_id", "subtask", "gold", "parsed"), condition
    ):
        answers = {
            name: pc.fill_null(pc.binary_join(batch[name], _SEPARATOR), "") for name in ("gold", "parsed")
        }
        rows = pa.table({"arm_id": batch["arm_id"], "subtask": batch["subtask"], **answers})
        for row in rows.group_by(rows.column_names).aggregate([([], "count_all")]).to_pylist():
            gold, answer = (row[name].partition(_SEPARATOR)[0] for name in ("gold", "parsed"))
            counts[row["arm_id"], row["subtask"], gold, answer or "none"] += row["count_all"]
    return [[*key, n] for key, n in sorted(counts.items())]


def _values(row: Mapping[str, Any]) -> dict[str, object]:
    """A score with its interval and counts, under names that W&B can chart."""
    name = summary_name(row["scope"], row["metric"])
    columns = ("low", "high", "n_items", "n_patients")
    return {name: row["value"], **{f"{name}/{column}": row[column] for column in columns}}


def summary_name(scope: str, metric: str) -> str:
    """The name of a score in the summary of an arm, e.g. `tier_1/primary`."""
    return f"{scope.replace(':', '_')}/{metric}"
