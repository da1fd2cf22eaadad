"""The last step of a sweep: judge, score, write the manifest and page, mirror, and print the summary."""

import time
from typing import Any

from cardiolens.base.console import say
from cardiolens.base.counted import counted
from cardiolens.base.phases import begin
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.missing import Missing
from cardiolens.inference.plan.plan import Plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.score.run_results.scoring import RunResults, judge_and_write
from cardiolens.show.page.page_data import Facts, read_facts
from cardiolens.show.page.write import write_page
from cardiolens.show.terminal import show
from cardiolens.show.tracker.mirror import track
from cardiolens.workflow.steps.closing_progress import closing_progress
from cardiolens.workflow.steps.model_outcomes import Prepared
from cardiolens.workflow.steps.run_manifest import (
    counters,
    placement_record,
    second_turns,
    stages_of_chains,
    write_manifest,
)


def conclude(
    planned: Plan,
    prepared: Prepared,
    remaining: dict[str, Missing],
    placement: Placement,
    executed: Executed,
) -> int:
    """Judge and score the completions, write manifest and page, mirror the run; return the exit code."""
    with closing_progress(planned.run):
        results, facts, counted = _close(planned, prepared, remaining, placement, executed)
    show.show_ending(facts)
    track(planned.run, planned.spec.tracker)  # last: an unreachable server takes long to fail
    return _exit_code(planned, prepared, results, counted["requests"], executed.failed)


def _close(
    planned: Plan,
    prepared: Prepared,
    remaining: dict[str, Missing],
    placement: Placement,
    executed: Executed,
) -> tuple[RunResults, Facts, dict[str, Any]]:
    """Judge, score, and write manifest and page."""
    started = time.monotonic()
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    results = judge_and_write(planned.run, planned.store, keys, planned.spec)
    seconds = {
        "prepare": prepared.seconds,
        "plan": planned.seconds,
        "load": executed.load_seconds,
        "generate": executed.seconds - executed.load_seconds,
        "judge": time.monotonic() - started,
    }
    unique = sum(work.unique for work in remaining.values())
    counted = counters(planned, unique, executed.counters, results.replies.counts)
    write_manifest(
        planned,
        {
            **counted,
            "stages": stages_of_chains(results.replies.stages, executed.counters),
            "placement": placement_record(placement, executed),
            "failed": executed.failed,
            "preparation": {"warnings": dict(prepared.warnings), "found": dict(prepared.found)},
            "seconds": {name: round(value, 3) for name, value in seconds.items()},
            "duplicates": results.replies.duplicates,
            "unrequested": results.replies.unrequested,
            "second_turns": second_turns(results.replies.counts, executed.counters),
            "questions_digest": results.replies.questions_digest,
            "withheld": results.replies.withheld,
        },
    )
    begin("reading scores for the page")
    facts = read_facts(planned.run, [planned.run])
    include_images = planned.spec.page.include_images
    write_page(planned.run, [planned.run], include_images=include_images, facts=facts)
    return results, facts, counted


def _exit_code(
    planned: Plan, prepared: Prepared, results: RunResults, requests: dict[str, int], failed: dict[str, str]
) -> int:
    """Print the summary; return 1 if requests, studies or models are missing, else 0."""
    say(
        f"requests: {requests['asked']} asked, {requests['unique']} unique, {requests['executed']} executed, "
        f"{requests['reused']} reused, {requests['error']} failed, {requests['overflow']} overflow, "
        f"{requests['skipped']} skipped"
    )
    if results.replies.in_jobs:
        say(f"judged in their own jobs: {', '.join(results.replies.in_jobs)}")
    show.show_withheld(results.replies.withheld)
    show.show_second_turns(results.replies.counts)
    if unfinished := results.replies.unfinished:
        number = counted(unfinished, "request")
        say(f"incomplete: {number} without a final completion; run the same command again")
    for warning, n_studies in sorted(prepared.warnings.items()):
        say(f"check ({counted(n_studies, 'study')}): {warning}")
    for study, error in prepared.failed:
        say(f"not prepared: {study}: {error}")
    for model, reason in failed.items():
        say(f"not run: {model}: {reason}")
    say(f"page: {planned.run.page}")
    say(f"run: {planned.run.root}")
    unfinished += results.replies.not_asked_back
    return 1 if unfinished or prepared.failed or failed else 0
