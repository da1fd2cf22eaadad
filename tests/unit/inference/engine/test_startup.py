"""The start of vLLM: cause and remedy of a failed one."""

import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.inference.engine.startup import cause_in, with_remedy

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


@pytest.mark.parametrize(
    ("reason", "setting"),
    [
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", "tensor_parallel"),
        ("ValueError: 8 GiB KV cache is needed, larger than the available KV cache", "max_model_len"),
        ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp", "NCCL_DEBUG"),
        ("ValueError: Free memory is less than desired GPU memory utilization (0.9", "nvidia-smi"),
    ],
)
def test_a_lack_of_memory_is_named_with_its_remedy(reason: str, setting: str):
    assert with_remedy(reason).startswith(reason)
    assert setting in with_remedy(reason).removeprefix(reason)


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
    assert "--mem in cluster.sbatch" in with_remedy(cause)
    assert cause_in(log.replace("Worker proc VllmWorker-1 died unexpectedly (exit code: -9)", "x")) == (
        "RuntimeError: cancelled"
    )
    bus = cause_in(log.replace("-9", "-7"))
    assert bus is not None
    assert "/dev/shm" in with_remedy(bus)
    assert "--mem" not in with_remedy(bus)


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


def test_a_process_that_ended_itself_had_said_why() -> None:
    """As NCCL's watchdog does, which aborts: not for lack of memory, and not by what followed."""
    cause = cause_in(WATCHDOG + FOLLOWS)
    assert cause.endswith("NCCL timeout")
    assert "NCCL_DEBUG" in with_remedy(cause)
    silent = cause_in(FOLLOWS)
    assert silent == "Worker proc VllmWorker-1 died unexpectedly (exit code: -6)"
    assert with_remedy(silent) == silent, "of an abort without words no cause is known"


def test_what_a_child_wrote_is_read_where_errors_are_a_file_and_nothing_elsewhere(tmp_path: Path):
    with (tmp_path / "errors").open("w") as errors:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], check=True, stderr=errors, stdout=subprocess.PIPE, text=True
        )
    assert done.stdout.splitlines() == ["MemoryError: of the child", "None"]
    piped = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert piped.stdout.splitlines() == ["None", "None"]
