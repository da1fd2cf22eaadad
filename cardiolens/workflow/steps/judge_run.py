"""Judge stored completions again, for one run or for several runs merged into one."""

from collections.abc import Sequence
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.base.console import say, shown_word
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm, arms
from cardiolens.score.claims.parts_of_cohort import groups_of
from cardiolens.score.run_results import merging
from cardiolens.score.run_results.model_replies import Replies
from cardiolens.score.run_results.reply_readings import PEERS, judge_by_others
from cardiolens.score.run_results.run_analyses import Analyses, AnalysisRow
from cardiolens.score.run_results.run_comparison import changes
from cardiolens.score.run_results.scoring import judge_replies, write_results
from cardiolens.score.run_results.stored_replies import check_stored
from cardiolens.score.statistics.verdict_rows import Verdicts, cohort
from cardiolens.show.page.case_viewer.pictures import FRAMES
from cardiolens.show.page.page_data import read_facts
from cardiolens.show.page.write import write_page
from cardiolens.show.terminal import show
from cardiolens.storage import documents, schemas, tables
from cardiolens.storage.places import Run, store_of
from cardiolens.workflow.steps.conclude import closing_progress


def judge(run: Run, *, by_others: bool = False) -> int:
    """Replace verdicts, scores and analyses of a run, print the changes; return 0 if no reply is missing.

    `by_others`: also score the replies by the rules of other evaluations.
    """
    spec = documents.read_configuration(run)
    before = Verdicts()
    for batch in tables.scan(run.verdicts, schemas.VERDICTS, schemas.VERDICTS.names):
        before.add(pa.Table.from_batches([batch]))
    old = _tier_scores(run)
    with closing_progress(run):
        replies = _replies(run, spec)
        further: dict[str, Sequence[AnalysisRow]] = {}
        if by_others:
            rows = judge_by_others(run, store_of(run, spec), _model_keys(run), spec, replies.verdict_store)
            further[PEERS] = rows
        _write(run, replies, spec, arms(spec), further=further)
        facts = read_facts(run, [run])
        if run.page.exists():
            write_page(run, [run], include_images=(run.viewer / FRAMES).exists(), facts=facts)
    show.show_ending(facts)
    show.show_second_turns(replies.counts)
    new = _tier_scores(run)
    moved = [
        (*key, old[key], new[key]) for key in sorted(old.keys() & new) if repr(old[key]) != repr(new[key])
    ]
    show.show_changes(changes(before, replies.verdict_store), moved)
    if replies.unrequested:
        say(f"ignored: {replies.unrequested} completions of requests that this run does not have")
    say(f"run: {run.root}")
    return 1 if replies.unfinished else 0


def judge_together(runs: Sequence[Run]) -> int:
    """Judge several runs as one, in a new folder beside the first; InputError if the runs do not match."""
    specs = [documents.read_configuration(run) for run in runs]
    configurations = [documents.as_written(run) for run in runs]
    merging.check_alike(runs, configurations, [documents.read_manifest(run) for run in runs])
    view = merging.merged_run(runs)
    with closing_progress(view):
        parts = [_replies(run, spec) for run, spec in zip(runs, specs, strict=True)]
        replies = merging.merge_replies(parts)
        every = {arm.arm_id: arm for spec in specs for arm in arms(spec)}
        _write(view, replies, specs[0], tuple(every.values()), parts=tuple(zip(runs, specs, strict=True)))
        facts = read_facts(view, runs)
    show.show_ending(facts)
    show.show_second_turns(replies.counts)
    say(f"run: {view.root}")
    return 1 if replies.unfinished else 0


def joined(runs: Sequence[Run]) -> Run:
    """Return a single run as it is; of several, return the merged run, judged if it was not yet.

    A run that was never judged may have more replies than when it was merged. InputError if a store is not
    there or lacks what was judged, and for a single run that was not judged.
    """
    for run in runs:
        check_stored(run)
    view = runs[0] if len(runs) == 1 else merging.merged_run(runs)
    if all(map(_is_judged, (view, *runs))):
        return view
    if len(runs) == 1:
        raise InputError(
            f"{view.root}: was not judged yet, or its results are gone; run "
            f"python -m cardiolens.judge {shown_word('run', view.root)}"
        )
    judge_together(runs)
    return view


def _is_judged(run: Run) -> bool:
    return run.analyses.exists() and all(map(tables.parts, (run.verdicts, run.scores)))


def _replies(run: Run, spec: SweepSpec) -> Replies:
    """Judge the replies of one run; InputError if its store is not there, or lacks what was judged before."""
    store = check_stored(run)
    digest = documents.read_manifest(run)["questions_digest"]
    return judge_replies(run, store, _model_keys(run), spec, digest)


def _model_keys(run: Run) -> dict[str, str]:
    return {name: facts["model_key"] for name, facts in documents.read_manifest(run)["models"].items()}


def _tier_scores(run: Run) -> dict[tuple[str, str], float]:
    """Return the stored values of the tiers by arm and tier."""
    is_of_tier = (pc.field("metric") == "primary") & pc.starts_with(pc.field("scope"), "tier:")
    rows = tables.query(run.scores, schemas.SCORES, ("arm_id", "scope", "value"), is_of_tier).to_pylist()
    return {(row["arm_id"], row["scope"]): row["value"] for row in rows}


def _write(
    run: Run,
    replies: Replies,
    spec: SweepSpec,
    planned_arms: Sequence[Arm],
    *,
    parts: Sequence[tuple[Run, SweepSpec]] = (),
    further: Analyses = MappingProxyType({}),
) -> None:
    """Write verdicts, scores and analyses of replies."""
    arm_ids = {arm.arm_id for arm in planned_arms}
    if strange := sorted(set(replies.verdict_store.arms) - arm_ids):
        raise InputError(
            f"{run.root}: requests of arm {strange[0]!r}, which its configuration.json does not have; "
            "the file was changed: run the sweep again"
        )
    groups = groups_of(spec.store, cohort(replies.verdict_store))
    write_results(run, replies, groups, planned_arms, spec, parts=parts, further=further)
