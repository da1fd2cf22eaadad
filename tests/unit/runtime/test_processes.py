"""Work over processes: results in order, one at a time or spread alike; a killed process has a name."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from cardiolens.base.errors import RunError
from cardiolens.runtime.processes import end_with_parent, spread


def squared(number: int) -> tuple[int, int]:
    return number * number, os.getpid()


def test_results_come_in_order_from_other_processes_only_where_it_is_worth_it(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    alone = list(spread(squared, range(8), worth=False))
    beside = list(spread(squared, range(8), chunk=2, worth=True))
    assert [value for value, _ in alone] == [value for value, _ in beside] == [n * n for n in range(8)]
    assert {process for _, process in alone} == {os.getpid()}
    assert os.getpid() not in {process for _, process in beside}


def lives(process: int) -> bool:
    """Return whether a process is there and not merely waiting to be collected."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    return False


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + 300
    while lives(process):
        assert time.monotonic() < deadline, "a process outlived its parent"
        time.sleep(0.05)


PARENT = """
import os, time
from cardiolens.runtime.processes import spread
from test_processes import squared

if __name__ == "__main__":
    os.sched_getaffinity = lambda _: {0, 1}
    found = spread(squared, range(100))
    print(next(found)[1], flush=True)
    time.sleep(60)
"""


def test_processes_end_with_a_parent_that_is_killed() -> None:
    here = Path(__file__).parent
    paths = os.pathsep.join(map(str, (here, here.parents[2])))
    with subprocess.Popen(
        [sys.executable, "-c", PARENT],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": paths},
    ) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        parent.kill()
    wait_for_end(child)


def test_a_killed_process_is_told_by_name(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    with pytest.raises(RunError, match="a process of this run was killed"):
        list(spread(dies_at_three, range(8)))


def dies_at_three(number: int) -> int:
    """Squares numbers; 3 ends the process."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number * number


@pytest.mark.parametrize("chunk", [1, 4, 100])
@pytest.mark.parametrize("worth", [True, False])
def test_an_item_that_ends_its_worker_costs_itself_alone(worth: bool, chunk: int) -> None:
    numbers = [0, 3, 1, 2, 5, 4, 3, *range(6, 20)]
    results = list(spread(dies_at_three, numbers, chunk=chunk, worth=worth, lost=lambda number: -number))
    assert results == [-n if n == 3 else n * n for n in numbers]


CLIENT = """
import multiprocessing, time
from cardiolens.runtime.processes import end_with_parent

def engine(ready):
    end_with_parent()
    ready.set()
    time.sleep(600)

if __name__ == "__main__":
    end_with_parent()  # the client has no parent that counts
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=engine, args=(ready,))
    process.start()
    ready.wait()
    print(process.pid, flush=True)
    time.sleep(600)
"""


def test_vllm_calls_it_in_each_of_its_processes():
    (plugin,) = entry_points(group="vllm.general_plugins", name="cardiolens")
    assert plugin.load() is end_with_parent


def test_a_killed_client_leaves_no_engine_that_loads(tmp_path: Path):
    script = tmp_path / "client.py"
    script.write_text(CLIENT)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as client:
        engine = int(client.stdout.readline())
        assert client.poll() is None
        client.send_signal(signal.SIGKILL)
    wait_for_end(engine)
