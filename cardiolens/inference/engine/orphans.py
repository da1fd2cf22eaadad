"""An engine's processes end with the process that started them.

vLLM stops its processes when its client ends in good order. A client that is killed, or that Ray ends while
an engine loads, would leave them behind, and they would hold their GPU's memory.
"""

import multiprocessing
import os
import signal
import threading


def end_with_parent() -> None:
    """Kill this process as soon as its parent has ended; vLLM calls this in each of its processes.

    Registered in pyproject.toml as a general plugin of vLLM. It does nothing in a process that Python's
    multiprocessing did not start, which is the client itself.
    """
    parent = multiprocessing.parent_process()
    if parent is None:
        return

    def wait() -> None:
        parent.join()
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=wait, name="end-with-parent", daemon=True).start()
