"""Progress of models, one JSON line per finished study, and judged runs, mirrored in Weights & Biases."""

import json
import logging
import math
import os
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from pydantic import TypeAdapter, ValidationError

from cardiolens.base import disk
from cardiolens.base.sanitize import one_line
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.sweep import SweepSpec, TrackerSpec
from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.execution import Standing, Watch
from cardiolens.score.statistics.scores import PREFIX
from cardiolens.show.page.cards import cards
from cardiolens.show.page.page_data import Facts
from cardiolens.show.tracker.wandb_runs import DONE, WandbGroup, add_table
from cardiolens.storage.places import Run

log = logging.getLogger(__name__)

ProgressRow = dict[str, int | float]
_ROW = TypeAdapter(ProgressRow)
_PATIENCE = 20.0  # seconds for W&B to take in the last rows
Summary = dict[str, Any]
_REQUESTS = ("asked", "unique", "executed", "reused", "error", "overflow")  # counters of the manifest
_TOKENS = ("prompt", "cached", "output")


def row_of(standing: Standing) -> ProgressRow:
    """Counters since the model began, under names that W&B can chart; zero failure kinds are left out."""
    of = Counter(standing.counters)
    row = {
        "time": round(time.time(), 3),  # seconds since 1970
        "requests/unique": standing.unique,
        DONE: standing.done,
        "requests/reused": standing.reused,
        "requests/executed": standing.executed,
        "requests/refused": of["refused"],
        "requests/failed": of["error"],
        "requests_per_second": round(standing.rate, 3),
        **{f"failed/{kind.name.lower()}": of[kind] for kind in ErrorKind if of[kind]},
    }
    if of["prompt_tokens"]:
        row |= {f"tokens/{name}": of[f"{name}_tokens"] for name in _TOKENS}
        row["tokens_per_second"] = round(standing.tokens_per_second, 1)
        row |= {f"frames/{name}": of[f"frames_{name}"] for name in ("referenced", "processed", "encoded")}
    return row


def appender(path: Path) -> Callable[[ProgressRow], None]:
    """Return a function that appends rows to a file; a failed write is logged once, and is no error."""
    failed = False

    def append(row: ProgressRow) -> None:
        nonlocal failed
        if failed:
            return
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = disk.open_log(path)
            try:
                end = os.lseek(handle, 0, os.SEEK_END)
                is_cut = end and os.pread(handle, 1, end - 1) != b"\n"  # by a kill while a row was written
                disk.append(handle, b"\n" * bool(is_cut) + json.dumps(row).encode() + b"\n", path)
            finally:
                os.close(handle)
        except OSError as error:
            failed = True
            log.warning("the progress of the model was not written (%s); its completions are", error)

    return append


def read_rows(path: Path) -> list[ProgressRow]:
    """Read the rows of a file, without unfinished lines of killed processes; empty if there is no file."""
    rows = []
    for line in read_bytes(path).splitlines() if path.exists() else ():
        try:
            rows.append(_ROW.validate_json(line))
        except ValidationError:
            log.info("%s: an unfinished line was left out", path)
    return rows


@contextmanager
def watching(plan: Plan) -> Iterator[Watch]:
    """Yield a function that starts recording a model and returns the callback for its counters."""
    group = _group(plan.run, plan.spec.tracker, plan.spec, plan.protocol, len(plan.study_ids))
    with _mirror(group) as mirror:

        def begin(model: str, _missing: Missing) -> Callable[[Standing], None]:
            path = plan.run.progress(model)
            append = appender(path)
            mirror(model, read_rows(path))

            def tell(standing: Standing) -> None:
                row = row_of(standing)
                append(row)
                mirror(model, [row])

            return tell

        yield begin


def _group(run: Run, tracker: TrackerSpec, spec: SweepSpec, protocol: str, studies: int) -> WandbGroup:
    """The runs of a sweep; each is configured with the number of the sweep's studies."""
    config = {"experiment": spec.name, "protocol": protocol, "dataset": spec.dataset.name, "studies": studies}
    return WandbGroup(run.root, tracker, config)


@contextmanager
def _mirror(group: WandbGroup) -> Iterator[Callable[[str, list[ProgressRow]], None]]:
    """Yield a function that queues rows of a model for W&B; at the end, an error if it takes too long.

    A thread of its own writes them, so that a slow tracker delays no model.
    """
    if group.tracker.mode == "none":
        yield lambda model, rows: None
        return
    queue = SimpleQueue[tuple[str, list[ProgressRow]] | None]()
    thread = threading.Thread(target=_write_rows, args=(group, queue), name="tracker", daemon=True)
    thread.start()
    try:
        yield lambda model, rows: queue.put((model, rows))
    finally:
        queue.put(None)
        thread.join(_PATIENCE)
        if thread.is_alive():
            log.error("Weights & Biases did not take in how far models were within %g s", _PATIENCE)


def _write_rows(group: WandbGroup, queue: SimpleQueue[tuple[str, list[ProgressRow]] | None]) -> None:
    """Write queued rows, one run of W&B per model, until None comes.

    Steps are numbered from the first row on disk: a run that is resumed online skips the rows it has.
    """
    try:
        with ExitStack() as stack:
            logs: dict[str, Callable[..., None]] = {}
            steps: Counter[str] = Counter()
            for model, rows in iter(queue.get, None):
                if model not in logs:
                    logs[model] = stack.enter_context(group.opened(model)).log
                for row in rows:
                    logs[model](row, steps[model])
                    steps[model] += 1
    except Exception as error:  # noqa: BLE001 - no failure of a tracker may stop the sweep
        log.error("Weights & Biases gets no more progress rows (%s); the files on disk do", error)


def track(facts: Facts, tracker: TrackerSpec) -> bool:
    """Mirror a judged run; False if W&B failed, which is logged alone: the disk is the record."""
    if tracker.mode == "none":
        return True
    (run,), (spec,), (manifest,) = facts.parts, facts.specs, facts.manifests
    group = _group(run, tracker, spec, manifest["protocol"], manifest["studies"])
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
    """Write summary, page and tables of the sweep: aggregates alone, without a study, patient or question."""
    import wandb

    words = ("question", "verdict", "sentence")
    rows: dict[str, list[dict[str, Any]]] = {
        "cards": [{name: getattr(card, name) for name in words} for card in cards(facts)],
        "arms": [{name: str(value) for name, value in asdict(arm).items()} for arm in facts.arms],
        **{name: [*map(dict, facts.analysis(name))] for name in ("collapse", "confusion")},
    }
    tables = {"scores": facts.scores, "comparisons": facts.comparisons}
    tables |= {name: pa.Table.from_pylist(of_name) for name, of_name in rows.items()}
    with group.opened() as opened:
        opened.summary.update(_of_sweep(facts))
        if run.page.exists():
            opened.log({"page": wandb.Html(str(run.page), inject=False)})
        for name, table in tables.items():
            add_table(opened, name, table)


def _add_model(group: WandbGroup, run: Run, facts: Facts, model: str) -> None:
    """Write the progress of a model, its scores and its cost."""
    arm_id, summary = _scored(facts, model)
    (took,) = [row for row in facts.usage if row["model"] == model]
    summary |= {f"requests/{name}": took[name] for name in ("asked", "unique", "answered")}
    summary |= {f"tokens/{name}": took[f"{name}_tokens"] for name in _TOKENS}
    summary["request_seconds"] = took["seconds"]
    model_key = facts.manifests[0]["models"][model]["model_key"]
    is_simulated = model in facts.simulated
    with group.opened(model, model_key=model_key, simulated=is_simulated, scored_arm=arm_id) as opened:
        for step, row in enumerate(read_rows(run.progress(model))):
            opened.log(row, step)
        opened.summary.update(summary)


def _of_sweep(facts: Facts) -> Summary:
    """The highest headline, and what the sweep was and took."""
    (manifest,) = facts.manifests
    models = [name for name in facts.models if name not in facts.simulated] or list(facts.models)
    summaries = {name: _scored(facts, name)[1] for name in models}
    scores = {name: of_model.get("tier_1") for name, of_model in summaries.items()}
    highest = max(models, key=lambda name: (scores[name] is not None, scores[name] or 0.0))
    summary: Summary = {"highest_model": highest, **summaries[highest]}
    counts = {"models": len(facts.models), "arms": len(facts.arms), "patients": facts.n_patients}
    summary |= {f"counts/{name}": number for name, number in counts.items()}
    summary |= {f"requests/{name}": manifest["requests"].get(name, 0) for name in _REQUESTS}
    summary |= {f"tokens/{name}": manifest["tokens"].get(name, 0) for name in ("prompt", "output")}
    return summary | {"seconds": sum(map(float, manifest["seconds"].values()))}


def _scored(facts: Facts, model: str) -> tuple[str, Summary]:
    """The arm that represents a model, its scores with intervals, and the share of replies that was read.

    It is the headline of the model, else its first arm that sees the images.
    """
    scores, arm_id = facts.scores_of(["primary"], "tier:"), f"{PREFIX}{model}"
    if all(row["arm_id"] != arm_id for row in scores):
        own = [arm for arm in facts.arms if arm.model == model]
        arm_id = next((arm.arm_id for arm in own if arm.control == "none"), own[0].arm_id)
    rows = [row for row in scores if row["arm_id"] == arm_id]
    items = sum(row["n_items"] for row in rows)
    summary: Summary = {"items": items}
    for row in rows:
        name = row["scope"].replace(":", "_")
        for end, column in (("", "value"), ("/low", "low"), ("/high", "high")):
            summary[f"{name}{end}"] = None if math.isnan(row[column]) else row[column]
    if items:
        unread = sum(row["n_parse_error"] + row["n_refusal"] for row in rows)
        summary["percent_read"] = round(100 * (items - unread) / items, 2)
    return arm_id, summary
