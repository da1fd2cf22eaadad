"""Parts of a plan are the same whoever makes them, and a model that fails in another process is left out."""

from pathlib import Path

import pytest
from small_cohort import make_cohort, reader, sweep_spec

from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models import embedded
from cardiolens.inference.plan import plan as planning
from cardiolens.inference.plan.plan import Plan, plan

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
