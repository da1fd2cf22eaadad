"""No process of an engine outlives the process that started it."""

import os
import signal
import subprocess
import sys
import time
from importlib.metadata import entry_points
from pathlib import Path

from cardiolens.inference.engine.orphans import end_with_parent

CLIENT = """
import multiprocessing, time
from cardiolens.inference.engine.orphans import end_with_parent

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
        assert client.stdout is not None
        engine = int(client.stdout.readline())
        assert client.poll() is None
        client.send_signal(signal.SIGKILL)
    deadline = time.monotonic() + 300
    while lives(engine):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False
