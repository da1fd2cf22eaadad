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
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.tracker.wandb_runs import DONE, WandbGroup, add_table
from cardiolens.storage import documents
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
    if not path.exists():
        return []
    rows = []
    for line in read_bytes(path).splitlines():
        try:
            rows.append(_ROW.validate_json(line))
        except ValidationError:
            log.info("%s: an unfinished line was left out", path)
    return rows


@contextmanager
def watching(plan: Plan) -> Iterator[Watch]:
    """Yield a function that starts recording a model and returns the callback for its counters."""
    with _mirror(_group(plan.run, plan.spec, plan.protocol, len(plan.study_ids))) as mirror:

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


def _group(run: Run, spec: SweepSpec, protocol: str, studies: int) -> WandbGroup:
    """The runs of a sweep; each is configured with the number of the sweep's studies."""
    config = {"experiment": spec.name, "protocol": protocol, "dataset": spec.dataset.name, "studies": studies}
    return WandbGroup(run.root, spec.tracker, config)


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


def track(run: Run, tracker: TrackerSpec) -> bool:
    """Mirror a judged run; False if W&B failed, which is logged alone: the disk is the record."""
    if tracker.mode == "none":
        return True
    spec, manifest = documents.read_configuration(run), documents.read_manifest(run)
    facts = read_facts(run, [run])
    spec = spec.model_copy(update={"tracker": tracker})
    group = _group(run, spec, manifest["protocol"], manifest["studies"])
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
    import wandb

    with group.opened() as opened:
        opened.summary.update(_of_sweep(facts))
        if run.page.exists():
            opened.log({"page": wandb.Html(str(run.page), inject=False)})
        for name, table in _tables(run, facts):
            add_table(opened, name, table)


def _tables(run: Run, facts: Facts) -> Iterator[tuple[str, pa.Table]]:
    """Yield the tables by name: aggregates alone, without a study, patient or question."""
    names = ("question", "verdict", "sentence")
    card_rows = [{name: getattr(card, name) for name in names} for card in cards(facts)]
    yield "cards", pa.Table.from_pylist(card_rows)
    arms = [{name: str(value) for name, value in asdict(arm).items()} for arm in facts.arms]
    yield "arms", pa.Table.from_pylist(arms)
    yield "scores", facts.scores
    yield "comparisons", facts.comparisons
    for name in ("collapse", "confusion"):
        yield name, pa.Table.from_pylist([dict(row) for row in facts.analysis(name)])


def _add_model(group: WandbGroup, run: Run, facts: Facts, model: str) -> None:
    """Write the progress of a model, its scores and its cost."""
    arm_id = _scored_arm(facts, model)
    summary = _of_arm(facts, arm_id)
    for usage in facts.usage:
        if usage.model == model:
            summary |= {f"requests/{name}": getattr(usage, name) for name in ("asked", "unique", "answered")}
            summary |= {f"tokens/{name}": getattr(usage, f"{name}_tokens") for name in _TOKENS}
            summary["request_seconds"] = usage.seconds
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
