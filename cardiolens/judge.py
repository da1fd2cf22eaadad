"""`python -m cardiolens.judge run=outputs/...`: verdicts and scores again, from what was said; no engine."""

import sys

import pyarrow as pa

from cardiolens import record, show, tables
from cardiolens.configure import read_run, tell
from cardiolens.errors import InputError, RunError
from cardiolens.plan.arms import arms
from cardiolens.scoring import judge_and_score
from cardiolens.store import Run, Store


def judge(run: Run) -> int:
    """Replace a run's verdicts and scores, and say how many verdicts changed; 0 only if all were made."""
    spec = record.read_configuration(run)
    models = record.read_manifest(run)["models"]
    before = _answers(tables.read(run.verdicts, tables.VERDICTS))
    keys = {name: facts["model_key"] for name, facts in models.items()}
    judged = judge_and_score(run, Store(spec.store), keys, spec)
    after = _answers(judged.verdicts)
    changed = sum(before.get(key) != answer for key, answer in after.items())
    show.show_scores(arms(spec), judged.scores)
    show.say(f"verdicts: {len(after)} made, {changed} changed")
    show.say(f"run: {run.root}")
    return 1 if judged.unfinished else 0


def _answers(verdicts: pa.Table) -> dict[tuple[str, str, str], tuple[object, ...]]:
    rows = verdicts.select(
        ["arm_id", "qa_id", "channel", "status", "parse_status", "parsed", "correct"]
    ).to_pylist()
    return {
        (row["arm_id"], row["qa_id"], row["channel"]): (
            row["status"],
            row["parse_status"],
            tuple(row["parsed"] or ()),
            row["correct"],
        )
        for row in rows
    }


def main() -> int:
    try:
        return judge(read_run(sys.argv[1:]))
    except (InputError, RunError) as error:
        return tell(error)


if __name__ == "__main__":
    sys.exit(main())
