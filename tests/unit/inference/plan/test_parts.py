"""Parts of a plan: the same whoever makes them, and written again exactly when something has changed."""

from pathlib import Path

import pytest
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.base import stage_versions
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models import embedded
from cardiolens.inference.plan import plan as planning
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.storage import tables
from cardiolens.storage.places import run_of

TINY = {"name": "tiny", "source": "embedded", "long_side": 64}
ARMS = {
    "budget": [2, 4],
    "selector": [{"name": "random", "kind": "random", "seeds": [0, 1]}, {"name": "self", "kind": "self"}],
    "control": ["none", "shuffled_options"],
    "subtask": ["C02", "L01", "D02"],
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("parts"), 6)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "PART_ROWS", 40)


def sweep(root: Path, name: str, **changes: object) -> SweepSpec:
    return sweep_spec(root, TINY, reader("uniform"), reader("noisy"), name=name, **(ARMS | changes))


def files(planned: Plan) -> dict[str, bytes]:
    folder = planned.run.requests("tiny").parent
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "plan.json"  # tells of the sweep's own configuration
    }


ELSEWHERE = {"control": ["none", "other_patient"], "selector": ARMS["selector"][:1]}  # frames of another part


@pytest.mark.full
@pytest.mark.parametrize("changes", [{}, ELSEWHERE], ids=["chains", "frames of others"])
def test_several_processes_write_the_bytes_of_one(
    root: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object]
):
    alone = plan(sweep(root, "alone", **changes))
    monkeypatch.setattr(planning, "_WORTH", 0)
    spread = plan(sweep(root, "spread", **changes))
    assert alone.run.requests("tiny") != spread.run.requests("tiny")
    assert files(spread) == files(alone)
    assert {name.split("/")[0] for name in files(alone)} == {"tiny", "uniform", "noisy"}
    assert sum("/part-" in name for name in files(alone)) >= 6
    assert (spread.status_counts, spread.most_frames) == (alone.status_counts, alone.most_frames)


@pytest.mark.full
def test_a_model_that_fails_in_another_process_leaves_nothing(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    embedded.build(tmp_path / "model")
    (tmp_path / "model" / "chat_template.jinja").write_text("{{ raise_exception('No system') }}")
    monkeypatch.setattr(planning, "_WORTH", 0)
    broken = TINY | {"source": str(tmp_path / "model")}
    spec = sweep_spec(root, broken, reader("uniform"), name="broken", keep_going=True, **ARMS)
    planned = plan(spec)
    assert list(planned.identities) == ["uniform"]
    assert "No system" in planned.failed["tiny"]
    assert not planned.run.requests("tiny").exists()
    assert planned.run.requests("uniform").exists()


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
