"""Pixels from file to eye: a reader that reads tells by its score that something is wrong with them.

The cohort exists once untouched and once for each break (bench/pixels.py). A fault of the same kind in
preprocessing, shards, selection or rendering would break the untouched copy, and no break would cost more.
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from bench.pixels import UNTOUCHED, changed, read, sign_test

pytestmark = [pytest.mark.ray, pytest.mark.full]

NUMBERED = (("C", 19), ("L", 5), ("P", 4), ("T", 4), ("D", 2))
# One slice off is not among them: test_place_of_frames sees it, this reader does not.
# See bench/results/reader.md.
BREAKS = ("reversed", "phase_off", "turned", "window", "wrong_study")
# Every subtask with options: a reversed stack costs few answers in each.
READ = [f"{sequence}{number:02}" for sequence, most in NUMBERED for number in range(1, most + 1)]
Answers = Mapping[str, Mapping[str, bool]]


def answers_of(folder: Path, studies: int, *breaks: str) -> Answers:
    return read(folder, 61007, studies, f"subtask=[{','.join(READ)}]", breaks=(UNTOUCHED, *breaks))


def test_turned_studies_are_not_read_and_untouched_ones_are(tmp_path: Path) -> None:
    """The break that costs most, on a few studies; the others need more."""
    answers = answers_of(tmp_path, 8, "turned")
    assert share_right(answers) > 0.7
    assert_costs("turned", answers)


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return answers_of(tmp_path_factory.mktemp("pixels"), 20, *BREAKS)


@pytest.mark.long
def test_what_nobody_touched_is_read(answers: Answers) -> None:
    assert share_right(answers) > 0.7


@pytest.mark.long
@pytest.mark.parametrize("name", BREAKS)
def test_a_break_costs_answers(name: str, answers: Answers) -> None:
    assert_costs(name, answers)


def share_right(answers: Answers) -> float:
    whole = answers[UNTOUCHED].values()
    return sum(whole) / len(whole)


def assert_costs(name: str, answers: Answers) -> None:
    lost, won = changed(answers, name)
    print(f"{name}: {lost} lost, {won} won")
    assert sign_test(lost, won) < 0.01, f"{lost} lost, {won} won"
