"""Judging a run again says which verdicts and scores it changed."""

from pathlib import Path

import pyarrow.compute as pc
import pytest
from page_run import finished, small_spec
from small_cohort import make_cohort

from cardiolens.storage import documents, schemas, tables
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


def test_a_manifest_counts_each_planned_request_once(tmp_path: Path) -> None:
    run = finished(small_spec(make_cohort(tmp_path, 2), "counted", subtask=["C02"]))
    manifest = documents.read_manifest(run)
    planned = [
        tables.query(run.requests(name), schemas.REQUESTS, ["request_key"], pc.field("status") == "planned")
        for name in manifest["models"]
    ]
    n_unique = sum(len(set(rows["request_key"].to_pylist())) for rows in planned)
    assert manifest["requests"]["unique"] == n_unique > 0
