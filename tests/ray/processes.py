"""Processes below one, as the kernel knows them."""

import time
from contextlib import suppress
from pathlib import Path

WORKING = ("ray::Map", "VLLM::")


def descendants(pid: int) -> list[int]:
    """Children of every thread, and theirs."""
    children = [
        int(child)
        for task in Path(f"/proc/{pid}/task").glob("*/children")
        for child in task.read_text().split()
    ]
    return [found for child in children for found in (child, *descendants(child))]


def process(root: int, name: str) -> int:
    """The one process below `root` whose command line begins with a name."""
    found = [pid for pid in descendants(root) if command_line(pid).startswith(name)]
    assert found, [command_line(pid) for pid in descendants(root)]
    return found[0]


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def environments(pids: list[int]) -> dict[str, bytes]:
    """Environments of the processes that have not ended, by command line."""
    found = {}
    for pid in pids:
        with suppress(OSError):
            found[command_line(pid).strip()] = Path(f"/proc/{pid}/environ").read_bytes()
    return found


def wait_for_end(pids: list[int]) -> None:
    """No process of a cluster outlives its killed driver for long: 4 s on a quiet machine."""
    deadline = time.monotonic() + 300
    while left := [line for line in map(command_line, pids) if line]:
        assert time.monotonic() < deadline, left
        time.sleep(0.1)
