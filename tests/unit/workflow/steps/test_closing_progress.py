"""After its last reply a run says what it does: on the terminal, in its log, and to `status`."""

import logging
import os
import time
from pathlib import Path

import pytest
from page_run import small_spec
from small_cohort import make_cohort, swept

from cardiolens.base.phases import Phase, begin, heard_by, phase
from cardiolens.show.terminal import bars
from cardiolens.storage.places import Run
from cardiolens.workflow.steps.conclude import closing_line, closing_progress


def test_judging_and_scoring_are_heard_and_leave_no_record(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bars, "_PLAIN_SECONDS", 0.0)
    spec, run = small_spec(make_cohort(tmp_path, 1), "closing", subtask=["C02"]), Run(tmp_path / "run")
    with caplog.at_level(logging.INFO, "cardiolens"), closing_progress(run):
        swept(spec)
        assert closing_line(run, time.time()) is not None
    printed = capsys.readouterr().out
    for words in ("judging: 2 of 2 models", "scoring: 4 of 4 arms", "comparing: 0 of ", "analysing"):
        assert words in caplog.text
        assert words in printed
    assert closing_line(run, 0) is None


def test_what_a_killed_run_did_last_is_read_with_its_age_and_an_error_leaves_nothing(tmp_path: Path) -> None:
    run, lines = Run(tmp_path / "run"), []

    def fail() -> None:
        with closing_progress(run):
            list(phase("judging", "models", iter(()), 2))
            os.utime(run.closing, (9000, 9000))
            lines.extend(closing_line(run, now) for now in (9000 + 20 * 60, 5000))
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert closing_line(run, 0) is None
    later, earlier = lines
    assert later == "judging: 0 of 2 models (written 0:20:00 ago)"
    assert earlier == "judging: 0 of 2 models (written 0:00:00 ago)", "no negative age"


def test_a_short_end_prints_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with closing_progress(Run(tmp_path / "run")):
        list(phase("judging", "models", "ab"))
    assert capsys.readouterr().out == ""


def test_a_listener_hears_the_begin_and_every_item() -> None:
    phases: list[Phase] = []
    with heard_by(phases.append):
        assert list(phase("judging", "models", ["a", "b"])) == ["a", "b"]
        begin("pooling")
        list(phase("scoring", "arms", iter("abc"), 3))
    assert [entry.words.partition(",")[0] for entry in phases] == [
        *("judging: 0 of 2 models", "judging: 1 of 2 models", "judging: 2 of 2 models"),
        "pooling",
        *(f"scoring: {done} of 3 arms" for done in range(4)),
    ]


def test_the_time_left_is_what_the_rest_takes_at_the_same_rate() -> None:
    assert Phase("judging", "models", 6, 24, 60.0).words == "judging: 6 of 24 models, 0:03:00 left"
    assert Phase("judging", "models", 0, 24, 60.0).words == "judging: 0 of 24 models"
    assert Phase("judging", "models", 24, 24, 60.0).seconds_left is None
    assert Phase("reading", "rows", 1200, None, 60.0).words == "reading: 1,200 rows"
