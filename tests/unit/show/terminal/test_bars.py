"""How far a model is, in words: made from counters alone."""

from collections import Counter
from types import SimpleNamespace

import pytest

from cardiolens.inference.plan.missing import WORK, Missing
from cardiolens.inference.stream import execution
from cardiolens.inference.stream.execution import Standing, begin_watches
from cardiolens.show.terminal.bars import progress_display

ENGINE = {
    **{
        "ok": 120,
        "refused": 3,
        "error": 2,
        "prompt_tokens": 400_000,
        "cached_tokens": 300_000,
    },
    **{"output_tokens": 2_000, "frames_referenced": 1_000, "frames_processed": 120, "load_ms": 9_000},
}


def test_a_line_has_rate_tokens_failures_and_the_time_left() -> None:
    standing = Standing(unique=1_325, reused=200, left=1_125, counters=ENGINE, seconds=62.0)
    assert standing.done == 325
    assert standing.note == ("200 reused, 2.0/s, 1,645 tokens/s, 3 refused, 2 failed, 0:08:16 left")


def test_a_simulated_reader_has_no_tokens() -> None:
    standing = Standing(unique=10, reused=0, left=10, counters={"ok": 10, "frames_referenced": 80}, seconds=4)
    assert standing.note == "0 reused, 2.5/s"


def test_before_anything_is_answered_no_time_is_foretold() -> None:
    assert Standing(unique=10, reused=4, left=6, counters={}, seconds=0).note == "4 reused"


def test_no_rate_is_told_before_it_is_known_since_when_the_engine_is_up() -> None:
    notes: list[str] = []
    watches = [lambda *_: lambda standing: notes.append(standing.note)]
    tell = begin_watches(watches, "tiny", Missing(WORK.empty_table(), unique=9, done=0, exhausted=0))
    tell(Counter(ok=3))
    tell(Counter(ok=1, engine_starts=1))
    assert notes[0] == "0 reused"
    assert "/s" in notes[1]


def test_a_rate_counts_from_the_end_of_the_slowest_load(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = iter((0.0, 90.0, 100.0))
    monkeypatch.setattr(execution, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    told: list[Standing] = []
    watches = [lambda *_: told.append]
    tell = begin_watches(watches, "tiny", Missing(WORK.empty_table(), unique=9, done=0, exhausted=0))
    tell(Counter(ok=3, engine_starts=1, load_ms=60_000))
    tell(Counter(ok=3, engine_starts=1, load_ms=20_000))
    assert [standing.seconds for standing in told] == [30.0, 40.0]


@pytest.mark.parametrize("job", [None, "17"])
def test_lines_say_what_is_reused_and_when_all_is_done(
    job: str | None, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    with progress_display() as watch:
        tell = begin_watches([watch], "tiny", Missing(WORK.empty_table(), unique=9, done=4, exhausted=1))
        tell(Counter(ok=3, engine_starts=1))
        tell(Counter(ok=1))
    first, last = capsys.readouterr().out.splitlines()
    assert first == "tiny: 4 requests to execute, 4 of 9 reused"
    assert last.startswith("tiny: 8 of 9 requests, 4 reused, ")
