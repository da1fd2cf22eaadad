"""Mirror of a judged run in Weights & Biases: a run of the sweep, and one per model."""

import logging
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from cardiolens.base.sanitize import one_line
from cardiolens.config.sweep import TrackerSpec
from cardiolens.score.statistics.headlines import PREFIX
from cardiolens.show.page.cards import cards
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.tracker.tracked_progress import read_rows
from cardiolens.show.tracker.wandb_runs import WandbGroup, open_group
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run

log = logging.getLogger(__name__)

Summary = dict[str, Any]
_REQUESTS = ("asked", "unique", "executed", "reused", "error", "overflow")  # counters of the manifest
_USAGE = {  # of a model: name in a summary, and in its usage
    **{f"requests/{name}": name for name in ("asked", "unique", "answered")},
    **{f"tokens/{name}": f"{name}_tokens" for name in ("prompt", "cached", "output")},
    "request_seconds": "seconds",
}


def track(run: Run, tracker: TrackerSpec) -> bool:
    """Mirror a judged run; False if W&B failed, which is logged alone: the disk is the record."""
    if tracker.mode == "none":
        return True
    spec, manifest = documents.read_configuration(run), documents.read_manifest(run)
    facts = read_facts(run, [run])
    group = open_group(run, spec, tracker, protocol=manifest["protocol"], studies=manifest["studies"])
    try:
        with _staging(tracker):
            _add_sweep(group, run, facts)
            for model in manifest["models"]:
                _add_model(group, run, facts, model)
    except Exception as error:  # noqa: BLE001 - whatever a server said, the sweep is done and on the disk
        words = one_line(str(error), 400)
        log.error("Weights & Biases was not written (%s); every number is in %s", words, run.root)
        import wandb

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


def _add_sweep(group: WandbGroup, run: Run, facts: Facts) -> None:
    """Write summary, page and tables of the sweep."""
    with group.open("sweep", tags=["sweep"]) as opened:
        opened.summarize(_of_sweep(facts))
        if run.page.exists():
            opened.add_page(run.page)
        for name, table in tables_of_run(run, facts):
            opened.add_table(name, table)


def tables_of_run(run: Run, facts: Facts) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables by name: aggregates alone, without a study, patient or question."""
    names = ("question", "verdict", "sentence")
    card_rows = [{name: getattr(card, name) for name in names} for card in cards(facts)]
    yield "cards", pa.Table.from_pylist(card_rows)
    arms = [{name: str(value) for name, value in asdict(arm).items()} for arm in facts.arms]
    yield "arms", pa.Table.from_pylist(arms)
    yield "scores", tables.read(run.scores, schemas.SCORES)
    yield "comparisons", tables.read(run.comparisons, schemas.COMPARISONS)
    for name in ("collapse", "confusion"):
        yield name, pa.Table.from_pylist([dict(row) for row in facts.analysis(name)])


def _add_model(group: WandbGroup, run: Run, facts: Facts, model: str) -> None:
    """Write the progress of a model, its scores and its cost."""
    options = {
        "model_key": facts.manifests[0]["models"][model]["model_key"],
        "simulated": model in facts.simulated,
        "scored_arm": _scored_arm(facts, model),
    }
    summary = _of_arm(facts, _scored_arm(facts, model))
    for usage in facts.usage:
        if usage.model == model:
            summary |= {name: getattr(usage, of) for name, of in _USAGE.items()}
    with group.open_model(model, options) as opened:
        for step, row in enumerate(read_rows(run.progress(model))):
            opened.log(row, step)
        opened.summarize(summary)


def _of_sweep(facts: Facts) -> Summary:
    """The highest headline, and what the sweep was and took."""
    (manifest,) = facts.manifests
    models = [name for name in facts.models if name not in facts.simulated] or list(facts.models)
    summaries = {name: _of_arm(facts, _scored_arm(facts, name)) for name in models}
    highest = max(models, key=lambda name: summaries[name].get("tier_1") or -math.inf)
    summary: Summary = {"highest_model": highest, **summaries[highest]}
    counts = {"models": len(facts.models), "arms": len(facts.arms), "patients": facts.n_patients}
    summary |= {f"counts/{name}": number for name, number in counts.items()}
    summary |= {f"requests/{name}": manifest["requests"].get(name, 0) for name in _REQUESTS}
    summary |= {f"tokens/{name}": manifest["tokens"].get(name, 0) for name in ("prompt", "output")}
    return summary | {"seconds": sum(map(float, manifest["seconds"].values()))}


def _scored_arm(facts: Facts, model: str) -> str:
    """The arm that represents a model: its headline, else its first arm that sees the images."""
    headline = f"{PREFIX}{model}"
    if any(row["arm_id"] == headline for row in facts.scores_of(["primary"], "tier:")):
        return headline
    own = [arm for arm in facts.arms if arm.model == model]
    return next((arm.arm_id for arm in own if arm.control == "none"), own[0].arm_id)


def _of_arm(facts: Facts, arm_id: str) -> Summary:
    """The score of an arm on each tier with its interval, and the share of the replies that was read."""
    rows = [row for row in facts.scores_of(["primary"], "tier:") if row["arm_id"] == arm_id]
    summary: Summary = {}
    for row in rows:
        name = row["scope"].replace(":", "_")
        for end, column in (("", "value"), ("/low", "low"), ("/high", "high")):
            summary[f"{name}{end}"] = None if math.isnan(row[column]) else row[column]
    items = sum(row["n_items"] for row in rows)
    if items:
        unread = sum(row["n_parse_error"] + row["n_refusal"] for row in rows)
        summary["percent_read"] = round(100 * (items - unread) / items, 2)
    return summary | {"items": items}
