"""One model that cannot be planned or run never ends a sweep that keeps going."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.models import embedded
from cardiolens.inference.models.chat import Chat
from cardiolens.inference.models.token_counts import ModelError
from cardiolens.inference.placement.placement import Placement
from cardiolens.inference.plan.missing import missing_of
from cardiolens.inference.plan.plan import plan
from cardiolens.inference.stream.execution import Executed
from cardiolens.storage import documents
from cardiolens.workflow.steps.conclude import conclude
from cardiolens.workflow.steps.prepare_cases import Prepared

Sweep = Callable[..., SweepSpec]
WORDS = ("model=[tiny,uniform]", "model.tiny.long_side=64", "subtask=[C01]", "budget=[2]")


@pytest.fixture
def broken(tmp_path: Path) -> str:
    """A word for the embedded model with a template that refuses every message."""
    embedded.build(tmp_path / "model")
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
    left = {name: missing_of(planned, name) for name in planned.identities}
    executed = Executed(failed=dict(planned.failed))
    assert conclude(planned, Prepared(0, 1, (), 0.0, 0), left, Placement((), (), ()), executed) == 1
    assert "not run: tiny: " in capsys.readouterr().out
    assert list(json.loads(planned.run.manifest.read_text())["failed"]) == ["tiny"]


@pytest.mark.full
@pytest.mark.parametrize("where", ["image_tokens", "_tokens", "__init__"])
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
        patched.setattr(Chat, "count_asked", lambda *_: 1 / 0)
        assert "ZeroDivisionError" in plan(spec).failed["tiny"]
    assert plan(spec).failed == {}
