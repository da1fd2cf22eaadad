"""Judging a run again says which verdicts and scores it changed."""

from pathlib import Path

import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.storage import schemas, tables
from cardiolens.workflow.steps.judge_run import judge


def test_a_score_that_judging_again_moves_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = finished(small_spec(make_cohort(tmp_path, 1), "again", subtask=["C02"]))
    (part,) = tables.parts(run.scores)
    rows = tables.read_part(part, schemas.SCORES).to_pylist()
    tier = next(row for row in rows if row["metric"] == "primary" and row["scope"] == "tier:1")
    tier["value"] += 3.0
    tables.write_part(run.scores, tables.from_rows(rows, schemas.SCORES), schemas.SCORES, part.name)
    assert judge(run) == 0
    said = capsys.readouterr().out
    assert ", 0 changed, 0 new, 0 gone" in said
    moved = [line for line in said.splitlines() if line.startswith("  tier 1 of ")]
    assert moved == [f"  tier 1 of {tier['arm_id']}: {tier['value']:.1f} to {tier['value'] - 3:.1f}"]
