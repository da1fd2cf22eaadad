"""A killed process leaves nothing of what it marked; one that ends leaves everything."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

# Starts two processes that outlive it, one of them marked, and then waits, or ends with or without an error.
DRIVER = """
import subprocess, sys, time
from cardiolens.runtime.watchdog import marked, watched
with watched() as mark:
    with marked(mark):
        ours = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
    other = subprocess.Popen(["sleep", "60"], stdout=subprocess.DEVNULL)
    print(ours.pid, other.pid, flush=True)
    if sys.argv[1] == "wait":
        time.sleep(60)
    if sys.argv[1] == "fail":
        raise SystemExit(3)
"""
SECONDS = 20.0  # 2.3 s on a quiet machine


def started(how: str) -> tuple[subprocess.Popen[str], list[int]]:
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, how], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    return driver, [int(pid) for pid in driver.stdout.readline().split()]


def runs(pid: int) -> bool:
    path = Path(f"/proc/{pid}/stat")
    return path.exists() and path.read_text().rpartition(")")[2].split()[0] != "Z"


def test_what_a_killed_process_marked_ends() -> None:
    driver, (ours, other) = started("wait")
    try:
        driver.kill()
        driver.communicate()
        deadline = time.monotonic() + SECONDS
        while runs(ours):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        assert runs(other)
    finally:
        os.kill(other, signal.SIGKILL)


@pytest.mark.parametrize(("how", "code"), [("end", 0), ("fail", 3)])
def test_nothing_is_killed_after_a_process_that_ends(how: str, code: int) -> None:
    driver, pids = started(how)
    try:
        driver.communicate()
        assert driver.returncode == code
        time.sleep(3.5)
        assert all(map(runs, pids))
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
