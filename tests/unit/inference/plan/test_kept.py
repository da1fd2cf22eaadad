"""A plan is written again exactly when something that decides it has changed."""

from cardiolens.base import stage_versions
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import tables
from cardiolens.storage.places import run_of


def written(spec: SweepSpec) -> list[tuple[str, int]]:
    parts = tables.parts(run_of(spec).requests("uniform"))
    return [(part.name, part.stat().st_mtime_ns) for part in parts]


def test_an_unchanged_plan_is_kept_with_its_counts(small_sweep):
    first = plan(small_sweep)
    before = written(small_sweep)
    again = plan(small_sweep)
    assert written(small_sweep) == before
    assert again.status_counts == first.status_counts == {"planned": 2}


def test_changed_questions_are_planned_again(small_sweep):
    plan(small_sweep)
    before = written(small_sweep)
    lines = small_sweep.dataset.questions.read_text().splitlines()
    kept_lines = [line for line in lines if '"L01"' not in line]
    assert len(kept_lines) == len(lines) - 1
    small_sweep.dataset.questions.write_text("\n".join(kept_lines) + "\n")
    assert plan(small_sweep).status_counts == {"planned": 1}
    assert written(small_sweep) != before


def test_a_part_that_is_gone_or_other_code_makes_a_new_plan(small_sweep, monkeypatch):
    plan(small_sweep)
    before = written(small_sweep)
    tables.parts(run_of(small_sweep).requests("uniform"))[0].unlink()
    assert plan(small_sweep).asked == 2
    after = written(small_sweep)
    assert len(after) == len(before) == 1
    monkeypatch.setattr(stage_versions, "PLAN", "another")
    plan(small_sweep)
    assert written(small_sweep) != after
