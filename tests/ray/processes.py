"""Processes below one, as the kernel knows them."""

import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

WORKING = ("ray::Map", "VLLM::")


def printed_by(command: Sequence[str], folder: Path | None, expect: int = 0, **environment: str) -> str:
    """What a command prints in a folder, when it has ended with the expected exit code."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=1500,
        check=False,
    )
    assert done.returncode == expect, (command, done.stdout, done.stderr)
    return done.stdout + done.stderr


def descendants(pid: int) -> list[int]:
    """Children of every thread, and theirs."""
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    children = [int(child) for task in tasks for child in _told(task).split()]
    return [found for child in children for found in (child, *descendants(child))]


def process(root: int, name: str) -> int:
    """The one process below `root` whose command line begins with a name."""
    found = [pid for pid in descendants(root) if command_line(pid).startswith(name)]
    assert found, [command_line(pid) for pid in descendants(root)]
    return found[0]


def command_line(pid: int) -> str:
    return _told(Path(f"/proc/{pid}/cmdline")).replace("\0", " ")


def _told(path: Path) -> str:
    """What the kernel says; nothing of what has ended."""
    try:
        return path.read_text()
    except OSError:
        return ""


def wait_for_end(pids: list[int]) -> None:
    """No process of a cluster outlives its killed driver for long: 4 s on a quiet machine."""
    deadline = time.monotonic() + 300
    while left := [line for line in map(command_line, pids) if line]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)


def kill_with_engines(running: "subprocess.Popen[str]") -> None:
    """Kill a driver, and wait for its workers and engines.

    Ray takes seconds to end the workers of a dead driver, in which a small model would answer all that they
    hold. Engines that stand still until the workers are gone keep the requests in flight.
    """
    working = [pid for pid in descendants(running.pid) if command_line(pid).startswith(WORKING)]
    engines = [pid for pid in working if command_line(pid).startswith("VLLM::")]
    assert engines
    for pid in engines:
        os.kill(pid, signal.SIGSTOP)
    running.kill()
    running.communicate()
    wait_for_end([pid for pid in working if pid not in engines])
    for pid in engines:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
    wait_for_end(engines)
