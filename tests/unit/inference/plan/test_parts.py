"""Parts of a plan: the same whoever makes them, kept while nothing changes, and models that fail."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from small_cohort import reader, sweep_spec

from cardiolens.base import stage_versions
from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.token_counts import ModelError
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan import plan as planning
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.storage import documents, tables
from cardiolens.storage.places import run_of
from cardiolens.study.cohort import StudyRecord
from cardiolens.workflow.steps.conclude import conclude
from cardiolens.workflow.steps.preparation import Prepared
from tests.support.tiny_model import FOLDER

PATIENTS = 6

TINY = {"name": "tiny", "source": "packaged/tiny", "long_side": 64}
ARMS = {
    "budget": [2, 4],
    "selector": [{"name": "random", "kind": "random", "seeds": [0, 1]}, {"name": "self", "kind": "self"}],
    "control": ["none", "shuffled_options"],
    "subtask": ["C02", "L01", "D02"],
}


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
    root: Path, broken: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(planning, "_WORTH", 0)
    model = TINY | {"source": broken.partition("=")[2]}
    planned = plan(sweep_spec(root, model, reader("uniform"), name="broken", keep_going=True, **ARMS))
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


Sweep = Callable[..., SweepSpec]
WORDS = ("model=[tiny,uniform]", "model.tiny.long_side=64", "subtask=[C01]", "budget=[2]")


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A word for the tiny model with a template that refuses every message."""
    shutil.copytree(FOLDER, tmp_path / "model")
    (tmp_path / "model" / "chat_template.jinja").write_text("{{ raise_exception('No system') }}")
    return f"model.tiny.source={tmp_path}/model"


@pytest.mark.full
def test_a_template_that_refuses_is_left_out_and_the_sweep_is_concluded(
    sweep_of: Sweep, broken: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(ModelError, match="No system"):
        plan(sweep_of(*WORDS, broken))
    planned = plan(sweep_of(*WORDS, broken, "keep_going=true"))
    assert list(planned.identities) == ["uniform"]
    assert {arm.model.name for arm in planned.arms} == {"uniform"}
    assert "No system" in planned.failed["tiny"]
    assert not planned.run.requests("tiny").exists()
    documents.write_configuration(planned.run, planned.spec)
    executed = Executed(failed=dict(planned.failed))
    prepared = Prepared({"A": StudyRecord(part="p", state="s", warnings=("a doubt",))}, {"B": "no file"})
    assert conclude(planned, prepared, Placement((), ()), executed) == 1
    said = capsys.readouterr().out
    tries = "run the same command again, which tries each request 3 times in all"
    for words in (tries, "not run: tiny: ", "check (1 study): a doubt", "not prepared: B: no file"):
        assert words in said
    assert json.loads(planned.run.manifest.read_text())["preparation"]["warnings"] == {"a doubt": 1}
    assert list(json.loads(planned.run.manifest.read_text())["failed"]) == ["tiny"]


@pytest.mark.full
@pytest.mark.parametrize("where", ["image_tokens", "_count_text", "__init__"])
@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), ImportError("flash"), AssertionError()])
def test_a_processor_that_fails_is_its_models_failure(
    where: str, error: Exception, sweep_of: Sweep, monkeypatch: pytest.MonkeyPatch
):
    def fails(*_: object, **__: object) -> int:
        raise error

    monkeypatch.setattr(Chat, "_count_image" if where == "image_tokens" else where, fails)
    with pytest.raises(InputError, match=type(error).__name__):
        plan(sweep_of(*WORDS))
    planned = plan(sweep_of(*WORDS, "keep_going=true"))
    assert list(planned.identities) == ["uniform"]
    assert str(error) in planned.failed["tiny"]


def test_a_sweep_of_nothing_else_or_that_declared_it_is_refused(sweep_of: Sweep, broken: str):
    with pytest.raises(InputError, match=r"no model of this sweep can be planned: .*No system"):
        plan(sweep_of("model=[tiny]", *WORDS[1:], broken, "keep_going=true"))
    primary = "+primary={model: tiny, versus: uniform, tier: 1}"
    with pytest.raises(InputError, match="primary compares tiny, which cannot be asked"):
        plan(sweep_of(*WORDS[:-1], "budget=[16]", broken, primary, "keep_going=true"))


def test_a_plan_that_broke_off_is_not_taken_for_a_whole_one(sweep_of: Sweep, monkeypatch: pytest.MonkeyPatch):
    spec = sweep_of(*WORDS, "keep_going=true")
    with monkeypatch.context() as patched:
        patched.setattr(Chat, "count", lambda *_: 1 / 0)
        assert "ZeroDivisionError" in plan(spec).failed["tiny"]
    assert plan(spec).failed == {}
