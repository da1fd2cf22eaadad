"""Work over processes: results in order, one at a time or spread alike; a killed process has a name."""

import os
import signal

import pytest

from cardiolens.cluster.processes import spread
from cardiolens.errors import RunError


def squared(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def killed(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def test_results_come_in_order_from_other_processes_only_where_it_is_worth_it(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    alone = list(spread(squared, range(8), worth=False))
    beside = list(spread(squared, range(8), chunk=2, worth=True))
    assert [value for value, _ in alone] == [value for value, _ in beside] == [n * n for n in range(8)]
    assert {process for _, process in alone} == {os.getpid()}
    assert os.getpid() not in {process for _, process in beside}


def test_a_killed_process_is_told_by_name(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(RunError, match="a process of this run was killed"):
        list(spread(killed, range(8)))
