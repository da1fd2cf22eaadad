"""`python -m cardiolens.judge run=outputs/...`: verdicts, scores and analyses again; no engine."""

import sys

import pyarrow as pa

from cardiolens import record, show, tables
from cardiolens.analysing import parts_of
from cardiolens.configure import read_run, tell
from cardiolens.errors import InputError, RunError
from cardiolens.judging.changes import changes
from cardiolens.plan.arms import arms
from cardiolens.scoring import conclude, judge_run
from cardiolens.store import Run, Store
from cardiolens.study.shards import read_volumes


def judge(run: Run) -> int:
    """Replace a run's verdicts, scores and analyses, and say what changed; 0 only if all were made."""
    spec, manifest = record.read_configuration(run), record.read_manifest(run)
    store, keys = Store(spec.store), {name: facts["model_key"] for name, facts in manifest["models"].items()}
    before, scored = tables.read(run.verdicts, tables.VERDICTS), tables.read(run.scores, tables.SCORES)
    replies = judge_run(run, store, keys, spec, manifest["questions_digest"])
    parts = parts_of(read_volumes(store.root), replies.verdicts)
    scores, analyses = conclude(run, replies, parts, spec)
    show.show_scores(arms(spec), scores)
    show.show_findings(analyses)
    show.show_changes(changes(before, replies.verdicts), _moved(scored, scores))
    if replies.unrequested:
        show.say(f"ignored: {replies.unrequested} completions of requests that this run does not have")
    show.say(f"run: {run.root}")
    return 1 if replies.unfinished else 0


def _moved(before: pa.Table, after: pa.Table) -> list[tuple[str, str, float, float]]:
    """Tier scores that are not what they were: arm, tier, old and new value."""
    old, new = _tier_scores(before), _tier_scores(after)
    both = sorted(set(old) & set(new))
    return [(*key, old[key], new[key]) for key in both if repr(old[key]) != repr(new[key])]


def _tier_scores(scores: pa.Table) -> dict[tuple[str, str], float]:
    return {
        (row["arm_id"], row["scope"]): row["value"]
        for row in scores.to_pylist()
        if row["metric"] == "primary" and row["versus_arm_id"] is None and row["scope"].startswith("tier:")
    }


def main() -> int:
    try:
        return judge(read_run(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
