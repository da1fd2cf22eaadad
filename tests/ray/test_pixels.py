"""Pixels from file to eye: a reader that reads tells by its score that something is wrong with them.

The cohort exists once untouched and once for each break (bench/pixels.py). A fault of the same kind in
preprocessing, shards, selection or rendering would break the untouched copy, and no break would cost more.
"""

from collections.abc import Mapping

import pytest

from bench.pixels import UNTOUCHED, changed, read, sign_test

pytestmark = pytest.mark.ray

NUMBERED = (("C", 19), ("L", 5), ("P", 4), ("T", 4), ("D", 2))
# One slice off is not among them: test_place_of_frames sees it, this reader does not (docs/reader.md).
BREAKS = ("reversed", "phase_off", "turned", "window", "wrong_study")
# Every subtask with options: a reversed stack costs few answers in each.
READ = [f"{sequence}{number:02}" for sequence, most in NUMBERED for number in range(1, most + 1)]
Answers = Mapping[str, Mapping[str, bool]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return read(
        tmp_path_factory.mktemp("pixels"),
        61007,
        20,
        f"subtask=[{','.join(READ)}]",
        breaks=(UNTOUCHED, *BREAKS),
    )


def test_what_nobody_touched_is_read(answers: Answers) -> None:
    whole = answers[UNTOUCHED].values()
    assert sum(whole) / len(whole) > 0.7


@pytest.mark.parametrize("name", BREAKS)
def test_a_break_costs_answers(name: str, answers: Answers) -> None:
    lost, won = changed(answers, name)
    assert sign_test(lost, won) < 0.01, f"{lost} lost, {won} won"
