"""The start of vLLM: a disturbed start, the cause and remedy of a failed one, and the threads it may use."""

import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.inference.engine import startup
from cardiolens.inference.engine.startup import cause_in, set_by_ray, started, with_remedy

DISTURBED = "AssertionError: Error in memory profiling. Initial free memory 20.1 GiB, current 60 GiB."

LOG = """\
(EngineCore pid=7) WARNING 11-22 10:32:57 [cpu.py:224] Triton is not installed.
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772] WorkerProc failed to start.
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772] Traceback (most recent call last):
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772]     raise torch.OutOfMemoryError("none left")
(Worker pid=9) ERROR 11-22 10:32:58 [multiproc_executor.py:772] torch.OutOfMemoryError: CUDA out of memory.
(EngineCore pid=7) ERROR 11-22 10:32:59 [core.py:866] Exception: WorkerProc initialization failed due to an
(EngineCore pid=7) ERROR 11-22 10:32:59 [core.py:866] Exception: WorkerProc initialization failed. See above.
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}
"""

SCRIPT = """\
import subprocess, sys
from cardiolens.inference.engine.startup import root_cause, written_so_far
print("ValueError: of before", file=sys.stderr, flush=True)
since = written_so_far()
subprocess.run([sys.executable, "-c", "raise MemoryError('of the child')"])
print(root_cause(since), flush=True)
print(root_cause(written_so_far()))
"""


class Vllm:
    """Fails to start with each of these messages in turn, then starts."""

    def __init__(self, *messages: str) -> None:
        self.messages = list(messages)
        self.tries = 0

    def __call__(self) -> str:
        self.tries += 1
        if self.messages:
            raise RuntimeError(self.messages.pop(0))
        return "engine"


def test_a_start_that_a_neighbour_disturbed_is_tried_once_more():
    vllm = Vllm(DISTURBED)
    assert started(vllm) == "engine"
    assert vllm.tries == 2
    vllm = Vllm(DISTURBED, DISTURBED)
    with pytest.raises(RuntimeError, match="memory profiling"):
        started(vllm)
    assert vllm.tries == 2


def test_any_other_failure_is_final_and_named_by_its_root_cause(monkeypatch: pytest.MonkeyPatch):
    vllm = Vllm("Engine core initialization failed. See root cause above.")
    monkeypatch.setattr(startup, "root_cause", lambda since: "ValueError: no room for the KV cache")
    with pytest.raises(RuntimeError, match="no room for the KV cache"):
        started(vllm)
    assert vllm.tries == 1


def test_the_disturbance_is_read_from_the_logs_of_vllms_processes(monkeypatch: pytest.MonkeyPatch):
    vllm = Vllm("Engine core initialization failed. See root cause above.")
    monkeypatch.setattr(startup, "root_cause", lambda since: DISTURBED)
    assert started(vllm) == "engine"


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "tensor_parallel"),
        ("ValueError: No available memory for the cache blocks. Try increasing", "gpu_memory_utilization"),
        (
            "ValueError: 8 GiB KV cache is needed, which is larger than the available KV cache",
            "max_model_len",
        ),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling", "max_num_seqs"),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp", "NCCL_DEBUG"),
        ("ValueError: Free memory is less than desired GPU memory utilization (0.9", "nvidia-smi"),
    ],
)
def test_a_lack_of_memory_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, reason: str, setting: str
):
    monkeypatch.setattr(startup, "root_cause", lambda since: reason)
    with pytest.raises(RuntimeError) as failed:
        started(Vllm("Engine core initialization failed."))
    assert str(failed.value).startswith(reason)
    assert setting in str(failed.value).removeprefix(reason)


def test_no_remedy_is_guessed_for_other_reasons():
    assert with_remedy("ValueError: no such head size") == "ValueError: no such head size"


def test_the_last_error_that_says_more_than_that_something_failed():
    assert cause_in(LOG) == "torch.OutOfMemoryError: CUDA out of memory."
    assert cause_in("all is well\nno Error here") is None


def test_a_killed_process_says_more_than_the_errors_that_follow():
    """The words of the pinned vLLM's multiproc_executor.py, of its engine core and of its client."""
    log = (
        "(EngineCore pid=7) ERROR 11-25 10:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-1 died "
        "unexpectedly (exit code: -9), shutting down executor.\n"
        "(EngineCore pid=7) ERROR 11-25 10:00:01 [core.py:900] RuntimeError: cancelled\n"
        "ERROR 11-25 10:00:01 [async_llm.py:500] vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
        "encountered an issue. See stack trace (above) for the root cause.\n"
    )
    cause = cause_in(log)
    assert cause == "Worker proc VllmWorker-1 died unexpectedly (exit code: -9)"
    assert "cluster.memory_gib" in with_remedy(cause)
    assert cause_in(log.replace("Worker proc VllmWorker-1 died unexpectedly (exit code: -9)", "x")) == (
        "RuntimeError: cancelled"
    )
    bus = cause_in(log.replace("-9", "-7"))
    assert bus is not None
    assert "/dev/shm" in with_remedy(bus)
    assert "memory_gib" not in with_remedy(bus)


WATCHDOG = """\
[rank1]:[E1126 10:00:00 ProcessGroupNCCL.cpp:690] Watchdog caught collective operation timeout: WorkNCCL(
terminate called after throwing an instance of 'c10::DistBackendError'
  what():  [PG ID 2 Rank 1] Process group watchdog thread terminated with exception: NCCL timeout
"""
FOLLOWS = """\
(EngineCore pid=7) ERROR 11-25 10:00:00 [multiproc_executor.py:315] Worker proc VllmWorker-1 died \
unexpectedly (exit code: -6), shutting down executor.
(EngineCore pid=7) ERROR 11-25 10:00:01 [core.py:900] RuntimeError: cancelled
"""


def test_a_process_that_ended_itself_had_said_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """As NCCL's watchdog does, which aborts: not for lack of memory, and not by what followed."""
    cause = cause_in(WATCHDOG + FOLLOWS)
    assert cause is not None
    assert cause.endswith("NCCL timeout")
    assert "NCCL_DEBUG" in with_remedy(cause)
    silent = cause_in(FOLLOWS)
    assert silent == "Worker proc VllmWorker-1 died unexpectedly (exit code: -6)"
    assert with_remedy(silent) == silent, "of an abort without words no cause is known"
    monkeypatch.setattr(startup, "_written", lambda since: iter((FOLLOWS, WATCHDOG)))
    assert startup.root_cause(()) == cause, "the log is on standard output, and the rest on standard error"
    monkeypatch.setattr(startup, "_written", lambda since: iter((FOLLOWS, "")))
    assert startup.root_cause(()) == silent


def test_what_a_child_wrote_is_read_where_errors_are_a_file_and_nothing_elsewhere(tmp_path: Path):
    with (tmp_path / "errors").open("w") as errors:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], check=True, stderr=errors, stdout=subprocess.PIPE, text=True
        )
    assert done.stdout.splitlines() == ["MemoryError: of the child", "None"]
    piped = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert piped.stdout.splitlines() == ["None", "None"]


@pytest.mark.parametrize(
    ("environment", "told", "undone"),
    [
        ({"OMP_NUM_THREADS": "1"}, {}, True),
        ({"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "1"}, False),
        ({"OMP_NUM_THREADS": "8"}, {}, False),
        ({}, {}, False),
    ],
)
def test_the_one_thread_of_ray_is_told_from_the_users(environment, told, undone):
    assert set_by_ray(environment, told) == undone
