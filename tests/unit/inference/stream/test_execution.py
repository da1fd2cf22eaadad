"""Models that run side by side or in turn: what each left behind, and why one did not run."""

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from cardiolens.base.errors import RunError
from cardiolens.inference.placement.footprint import Node
from cardiolens.inference.placement.placement import Deployment, Placement
from cardiolens.inference.stream import execution
from cardiolens.inference.stream.execution import Executed, execute
from cardiolens.inference.stream.pipeline import Streamed
from cardiolens.runtime.stopping import StoppedError

MODELS = ("first", "second")  # one behind the other, on one GPU
LOADED = Counter(ok=3, load_ms=20)


def executed(monkeypatch: pytest.MonkeyPatch, *, keep_going: bool, **failing: Exception) -> Executed:
    """Both models, of which some fail."""

    def stream(plan: Any, deployment: Deployment, *_: object) -> Streamed:
        if deployment.model in failing:
            raise failing[deployment.model]
        return Streamed(LOADED, frozenset({"n1:0"}))

    monkeypatch.setattr(execution, "stream", stream)
    plan: Any = SimpleNamespace(spec=SimpleNamespace(keep_going=keep_going))
    waves = tuple((Deployment(name, 1, 1, (("n1",),), 0.9, "fits", 1.0),) for name in MODELS)
    placement = Placement((Node("n1", 1, 80.0),), waves, {"vast": "too large"})
    missing: Any = dict.fromkeys(MODELS)
    return execute(plan, placement, missing)


def test_every_model_leaves_its_counters_and_its_span(monkeypatch: pytest.MonkeyPatch) -> None:
    done = executed(monkeypatch, keep_going=False)
    assert done.counters == dict.fromkeys(MODELS, LOADED)
    assert done.failed == {"vast": "too large"}
    first, second = (done.spans[name] for name in MODELS)
    assert 0 <= first.began <= first.ended <= second.began <= second.ended <= done.seconds
    assert [span.up - span.began for span in (first, second)] == pytest.approx([0.02] * 2)


def test_the_seconds_of_loading_are_those_of_the_spans() -> None:
    spans = {"first": execution.Span(0.0, 2.0, 5.0), "second": execution.Span(5.0, 6.0, 9.0)}
    assert Executed(spans=spans).load_seconds == 3.0


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (RunError("the engine\n died again"), "the engine died again"),
        (ValueError("shapes differ"), "ValueError: shapes differ"),
    ],
)
def test_a_model_that_fails_is_told_and_the_others_run_or_its_error_ends_the_run(
    monkeypatch: pytest.MonkeyPatch, error: Exception, told: str
) -> None:
    done = executed(monkeypatch, keep_going=True, first=error)
    assert done.failed == {"vast": "too large", "first": told}
    assert list(done.streamed) == list(done.spans) == ["second"]
    with pytest.raises(type(error), match=r"died again|shapes differ") as raised:
        executed(monkeypatch, keep_going=False, first=error)
    assert str(raised.value).startswith("model first: ") == isinstance(error, RunError)


def test_a_stop_is_no_failure_of_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(StoppedError):
        executed(monkeypatch, keep_going=True, first=StoppedError())
