"""The stall clock: loading has its own, and a sign that nobody renews stops nothing."""

import time
from pathlib import Path

import pytest

from cardiolens.base.errors import RunError
from cardiolens.config.sweep import StreamSpec
from cardiolens.inference.stream import loading
from cardiolens.inference.stream.loading import StallClock, sign_of_loading


def test_a_sign_stands_and_changes_while_an_engine_loads(tmp_path: Path) -> None:
    seen = set()
    with sign_of_loading(tmp_path, renewed_seconds=0.02):
        for _ in range(3):
            time.sleep(0.2)
            seen.add((next(tmp_path.glob(".loading-*"))).read_text())
    assert len(seen) == 3
    assert not list(tmp_path.iterdir())


def test_a_sign_that_a_killed_engine_left_is_none(tmp_path: Path, now: list[float]) -> None:
    (tmp_path / ".loading-node-1-aa").write_text("7")
    clock = StallClock(tmp_path, StreamSpec(stall_seconds=100))
    with pytest.raises(RunError, match="no request was completed for 100 s"):
        ticks(clock, now, 120)


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(loading.time, "monotonic", lambda: now[0])
    return now


def ticks(clock: StallClock, now: list[float], seconds: float, sign: Path | None = None) -> None:
    """Let so many seconds pass, in steps of 10 in which an engine may renew its sign."""
    for step in range(int(seconds / 10)):
        now[0] += 10
        if sign is not None:
            sign.write_text(str(step))
        clock.check()


def test_loading_is_no_stall_and_what_follows_may_be(tmp_path: Path, now: list[float]) -> None:
    clock = StallClock(tmp_path, StreamSpec(stall_seconds=100))
    ticks(clock, now, 90)
    ticks(clock, now, 5000, tmp_path / ".loading-a")
    ticks(clock, now, 100)
    with pytest.raises(RunError, match=r"no request was completed for 100 s.*stream\.stall_seconds"):
        ticks(clock, now, 20)


def test_loading_has_a_limit_of_its_own_which_begins_with_each_load(tmp_path: Path, now: list[float]) -> None:
    clock = StallClock(tmp_path, StreamSpec(stall_seconds=100, load_seconds=600))
    ticks(clock, now, 500, tmp_path / ".loading-a")
    clock.restart()
    ticks(clock, now, 600, tmp_path / ".loading-b")
    with pytest.raises(RunError, match=r"loading for 600 s.*stream\.load_seconds"):
        ticks(clock, now, 20, tmp_path / ".loading-b")


def test_a_sign_that_a_shared_file_system_shows_late_stands_for_one_load(
    tmp_path: Path, now: list[float]
) -> None:
    clock = StallClock(tmp_path, StreamSpec(load_seconds=600))

    def minutes(n: int) -> None:
        for minute in range(n):
            (tmp_path / ".loading-a").write_text(f"minute {minute}")
            ticks(clock, now, 60)

    with pytest.raises(RunError, match=r"loading for 600 s.*copy the weights"):
        minutes(20)
    assert now[0] - 1000 <= 600 + 2 * 60


def test_a_load_that_ended_just_before_its_limit_is_no_load_beyond_it(
    tmp_path: Path, now: list[float]
) -> None:
    clock = StallClock(tmp_path, StreamSpec(stall_seconds=1000, load_seconds=600))
    ticks(clock, now, 590, tmp_path / ".loading-a")
    ticks(clock, now, 500)


def test_the_driver_logs_how_long_an_engine_loads(
    tmp_path: Path, now: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO"):
        ticks(StallClock(tmp_path, StreamSpec()), now, 200, tmp_path / ".loading-a")
    assert "loading for 2 min" in caplog.text
