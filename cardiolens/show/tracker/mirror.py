"""Mirror of a judged run in a tracker: one run of the sweep, one per model, and if asked for one per arm."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from tempfile import TemporaryDirectory

from cardiolens.base.errors import RunError
from cardiolens.base.sanitize import one_line
from cardiolens.config.arms import Arm, arms
from cardiolens.config.sweep import SweepSpec, TrackerSpec
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.tracker.live import add_progress, open_model
from cardiolens.show.tracker.run_group import open_group
from cardiolens.show.tracker.run_summary import Summaries
from cardiolens.show.tracker.run_tables import tables_of_run
from cardiolens.show.tracker.tracked_run import RunGroup, TrackedRun, finishing
from cardiolens.storage import documents
from cardiolens.storage.places import Run

log = logging.getLogger(__name__)


def track(run: Run, tracker: TrackerSpec) -> bool:
    """Mirror a judged run; False if the tracker failed, or holds fewer rows than the run.

    A failure is logged and raises nothing: the disk is the record.
    """
    if tracker.kind == "none":
        return True
    spec, manifest = documents.read_configuration(run), documents.read_manifest(run)
    facts = read_facts(run, [run])
    summaries = Summaries(facts)
    group = open_group(run, spec, tracker, protocol=manifest["protocol"], studies=manifest["studies"])
    try:
        with _staging(tracker):
            with finishing(group.open("sweep", tags=["sweep"])) as opened:
                _add_sweep(opened, run, summaries)
            if tracker.runs != "summary":
                for model in manifest["models"]:
                    _add_model(group, run, summaries, model)
            if tracker.runs == "arms":
                for arm in arms(spec):
                    if arm.model.name in manifest["models"]:  # not one that could not be planned
                        _add_arm(group, spec, summaries, arm)
    except Exception as error:  # noqa: BLE001 - whatever a server said, the sweep is done and on the disk
        log.error(
            "Weights & Biases was not written (%s); every number is in %s",
            one_line(str(error), 400),
            run.root,
        )
        _end_quietly()
        return False
    return True


def _end_quietly() -> None:
    import wandb

    with suppress(Exception):  # at the end of the process it would be a traceback
        wandb.teardown(1)


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


def _add_sweep(opened: TrackedRun, run: Run, summaries: Summaries) -> None:
    """Write summary and page of the sweep, and every table; RunError if a row of a table was not written."""
    opened.summarize(summaries.of_sweep())
    if run.page.exists():
        opened.add_page(run.page)
    for name, table in tables_of_run(run, summaries.facts):
        n_written = opened.add_table(name, table)
        if n_written != table.num_rows:
            raise RunError(f"of table {name}, {n_written:,} of {table.num_rows:,} rows were written")


def _add_model(group: RunGroup, run: Run, summaries: Summaries, model: str) -> None:
    """Write the progress of a model, its scores and its cost."""
    with finishing(open_model(group, model, _model_options(summaries, model))) as opened:
        add_progress(opened, run.progress(model))
        opened.summarize(summaries.of_model(model))


def _model_options(summaries: Summaries, model: str) -> dict[str, object]:
    facts = summaries.facts
    return {
        "model_key": facts.manifests[0]["models"][model]["model_key"],
        "simulated": model in facts.simulated,
        "scored_arm": summaries.scored_arm(model),
    }


def _add_arm(group: RunGroup, spec: SweepSpec, summaries: Summaries, arm: Arm) -> None:
    """Write the options and scores of one arm."""
    tags = [arm.model.name, arm.selector_name, arm.prompt.name, spec.dataset.name]
    options = _options(spec, summaries.facts, arm)
    with finishing(group.open("arm", arm.label, key=[arm.arm_id], tags=tags, config=options)) as opened:
        opened.summarize(summaries.of_arm(arm.arm_id))


def _options(spec: SweepSpec, facts: Facts, arm: Arm) -> dict[str, object]:
    return {
        "arm_id": arm.arm_id,
        "model": arm.model.name,
        "model_key": facts.manifests[0]["models"][arm.model.name]["model_key"],
        "simulated": arm.model.simulated,
        "selector": arm.selector_name,
        "budget": arm.budget_value,
        "prompt": arm.prompt.name,
        "caption": spec.caption,
        "answer_format": spec.answer_format,
        "control": arm.control,
        "wording": arm.wording,
        "shots": arm.prompt.shots,
        "cine": arm.prompt.cine,
    }
