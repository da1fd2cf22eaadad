"""A plan is written again exactly when something that decides it has changed."""

import shutil
from pathlib import Path

import pytest

from cardiolens import tables
from cardiolens.configure import read_spec
from cardiolens.phantom.cohort import make_cohort
from cardiolens.plan import kept
from cardiolens.plan.plan import plan
from cardiolens.spec import PhantomSpec, SweepSpec
from cardiolens.store import run_of
from cardiolens.study.cohort import Cohort, write_cohort
from cardiolens.study.group import prepare_group
from cardiolens.study.manifest import read_study


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """One small phantom study and its store."""
    root = tmp_path_factory.mktemp("plan")
    make_cohort(PhantomSpec(canonical=("PH-NORMAL",), size="ci"), root / "data")
    folders = sorted((root / "data" / "studies").iterdir())
    outcomes = prepare_group(root / "store", "part-1.parquet", folders, (1.0, 99.0), strict=True)
    studies = {
        read_study(folder).study_id: outcome.record for folder, outcome in zip(folders, outcomes, strict=True)
    }
    write_cohort(root / "store", Cohort(window_pct=(1.0, 99.0), studies=studies, failed={}))
    return root


@pytest.fixture
def spec(prepared, tmp_path) -> SweepSpec:
    words = ["model=[uniform]", "subtask=[C01,L01]", "budget=[4]", f"outputs={tmp_path}/outputs"]
    data = [f"dataset.studies={prepared}/data/studies", f"dataset.questions={tmp_path}/questions.jsonl"]
    shutil.copy(prepared / "data" / "questions.jsonl", tmp_path / "questions.jsonl")
    return read_spec([*words, *data, f"store={prepared}/store"])


def written(spec: SweepSpec) -> list[tuple[str, int]]:
    parts = tables.parts(run_of(spec).requests("uniform"))
    return [(part.name, part.stat().st_mtime_ns) for part in parts]


def test_an_unchanged_plan_is_kept_with_its_counts(spec):
    first = plan(spec)
    before = written(spec)
    again = plan(spec)
    assert written(spec) == before
    assert again.status_counts == first.status_counts == {"planned": 2}


def test_changed_questions_are_planned_again(spec):
    plan(spec)
    before = written(spec)
    lines = spec.dataset.questions.read_text().splitlines()
    kept_lines = [line for line in lines if '"L01"' not in line]
    assert len(kept_lines) == len(lines) - 1
    spec.dataset.questions.write_text("\n".join(kept_lines) + "\n")
    assert plan(spec).status_counts == {"planned": 1}
    assert written(spec) != before


def test_a_part_that_is_gone_or_other_code_makes_a_new_plan(spec, monkeypatch):
    plan(spec)
    before = written(spec)
    tables.parts(run_of(spec).requests("uniform"))[0].unlink()
    assert plan(spec).asked == 2
    after = written(spec)
    assert len(after) == len(before) == 1
    monkeypatch.setattr(kept, "_code", lambda: "another version")
    plan(spec)
    assert written(spec) != after
