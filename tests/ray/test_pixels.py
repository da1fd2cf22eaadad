"""Pixels from file to eye: a reader that reads tells by its score that something is wrong with them.

The cohort exists once untouched and once for each break (bench/pixels.py). A fault of the same kind in
preprocessing, shards, selection or rendering would break the untouched copy, and no break would cost more.
"""

from collections.abc import Mapping

import pytest

from bench.pixels import BREAKS, UNTOUCHED, changed, read, sign_test

pytestmark = pytest.mark.ray

READ = "subtask=[C01,C02,C06,C10,L01,L02,L03,P01,P02,T01,T02,D01,D02]"
Answers = Mapping[str, Mapping[str, bool]]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    return read(tmp_path_factory.mktemp("pixels"), 61007, 16, READ)


def test_what_nobody_touched_is_read(answers: Answers) -> None:
    whole = answers[UNTOUCHED].values()
    assert sum(whole) / len(whole) > 0.7


@pytest.mark.parametrize("name", [name for name in BREAKS if name != UNTOUCHED])
def test_a_break_costs_answers(name: str, answers: Answers) -> None:
    lost, won = changed(answers, name)
    assert sign_test(lost, won) < 0.01, f"{lost} lost, {won} won"
