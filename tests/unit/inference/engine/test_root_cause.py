"""What is told of an engine that did not start: the error of the process that knows."""

import subprocess
import sys
from pathlib import Path

from cardiolens.inference.engine.root_cause import cause_in

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
from cardiolens.inference.engine.root_cause import written_so_far, root_cause
print("ValueError: of before", file=sys.stderr, flush=True)
since = written_so_far()
subprocess.run([sys.executable, "-c", "raise MemoryError('of the child')"])
print(root_cause(since), flush=True)
print(root_cause(written_so_far()))
"""


def test_the_last_error_that_says_more_than_that_something_failed():
    assert cause_in(LOG) == "torch.OutOfMemoryError: CUDA out of memory."
    assert cause_in("all is well\nno Error here") is None


def test_what_a_child_wrote_is_read_where_errors_are_a_file_and_nothing_elsewhere(tmp_path: Path):
    with (tmp_path / "errors").open("w") as errors:
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT], check=True, stderr=errors, stdout=subprocess.PIPE, text=True
        )
    assert done.stdout.splitlines() == ["MemoryError: of the child", "None"]
    piped = subprocess.run([sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True)
    assert piped.stdout.splitlines() == ["None", "None"]
