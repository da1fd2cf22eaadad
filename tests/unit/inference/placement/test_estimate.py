"""Hours of a plan: prefixes computed once, frames encoded once, and what a run then measures."""

import logging
import time
from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

from cardiolens.inference.placement.estimate import Rates, most_seconds, work_seconds
from cardiolens.inference.placement.placement import place
from cardiolens.inference.plan.missing import WORK, Missing
from cardiolens.inference.stream.calibration import Measured, calibrated
from tests.unit.clusters import EIGHT, model

REUSING = replace(
    model("m", 16.0, billions=8.0, prompt_tokens=100_000_000, output_tokens=1_000_000),
    computed_tokens=10_000_000,
    encoder_tokens=1_000_000,
    reply_tokens=100_000,
)
LEFT = Missing(pa.Table.from_pylist([], schema=WORK), unique=10_000, done=0, exhausted=0)


def test_what_caches_give_is_not_computed_again() -> None:
    rates = Rates()
    encoding = 1e6 * 4 * 0.675 / 80_000
    assert work_seconds(REUSING, rates) == pytest.approx(8 * (1e7 / 80_000 + 1e5 / 16_000) + encoding)
    assert most_seconds(REUSING, rates) == pytest.approx(8 * (1e8 / 80_000 + 1e6 / 16_000))
    (deployment,) = place(EIGHT, [REUSING]).deployments
    assert deployment.seconds < deployment.most_seconds / 3


def test_without_a_count_the_hours_are_the_most() -> None:
    unknown = replace(REUSING, computed_tokens=None)
    assert work_seconds(unknown, Rates()) == most_seconds(unknown, Rates())


def test_the_first_minutes_of_a_run_are_told_once_beside_the_plan(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    (deployment,) = place(EIGHT, [REUSING]).deployments
    passed, kept = Counter[str](), list[Measured]()
    tell = calibrated(deployment, LEFT, passed.update, kept.append)
    caplog.set_level(logging.WARNING)
    for minute in range(1, 7):
        now = 60.0 * minute
        tell(Counter(ok=500, engine_starts=minute == 1, load_ms=60_000 if minute == 1 else 0))
    assert passed["ok"] == 3000
    (measured,) = kept
    # One minute of loading, then 2,000 requests in three minutes: 10,000 take fifteen.
    assert measured.measured == pytest.approx(60 + 900)
    assert measured.planned == deployment.seconds
    (record,) = caplog.records
    assert "first 3 minutes give 0.27 hours" in record.message
    assert f"cluster.prefill_rate and cluster.decode_rate by {measured.rate_factor:.2g}" in record.message
    factored = Rates(80_000 * measured.rate_factor, 16_000 * measured.rate_factor)
    (again,) = place(EIGHT, [REUSING], factored).deployments
    assert again.seconds - again.load_seconds == pytest.approx(900), "the plan is the run, but for loading"


def test_failing_fast_is_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    (deployment,) = place(EIGHT, [REUSING]).deployments
    kept = list[Measured]()
    tell = calibrated(deployment, LEFT, lambda counters: None, kept.append)
    now = 300.0
    tell(Counter(ok=100, error=2_000, engine_starts=1))
    assert not kept


def test_a_short_run_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    (deployment,) = place(EIGHT, [REUSING]).deployments
    kept = list[Measured]()
    tell = calibrated(deployment, LEFT, lambda counters: None, kept.append)
    now = 600.0
    tell(Counter(ok=9_000, engine_starts=1))
    assert not kept, "more than half is answered: a forecast tells nothing any more"
