"""Start of vLLM: its option names, and why it failed."""

import ast
import os
import re
import signal
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import likely
from cardiolens.config.model import SET_HERE
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.ask import EngineDeadError, ErrorKind, RequestError

_CLASSES = ("EngineArgs", "AsyncEngineArgs")


def check_engine_options(spec: SweepSpec) -> None:
    """Raise InputError, before anything starts, for an engine option that the installed vLLM lacks.

    Without an installed vLLM no option is checked; models that need vLLM are refused elsewhere.
    """
    for model in spec.model:
        legal_options = known_options() if model.engine_options else frozenset()
        for name in sorted(model.engine_options.keys() - legal_options) if legal_options else ():
            nearest = ", ".join(likely(name, legal_options - SET_HERE.keys()))
            legal = f"the nearest are {nearest}" if nearest else "see its AsyncEngineArgs"
            raise InputError(
                f"model {model.name}: engine_options.{name}: vLLM has no such option; {legal}; correct or "
                "remove it"
            )


@cache
def known_options() -> frozenset[str]:
    """Return the fields of vLLM's AsyncEngineArgs, without importing it; empty if it is not installed."""
    package = find_spec("vllm")
    if package is None or package.origin is None:
        return frozenset()
    source = Path(package.origin).parent / "engine" / "arg_utils.py"
    names = {
        field.target.id
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.ClassDef) and node.name in _CLASSES
        for field in node.body
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
    }
    return frozenset(name for name in names if not name.startswith("_"))


_THREADS = "OMP_NUM_THREADS"
_LONGEST = 500  # characters of a message; some messages quote the whole prompt
NO_CAUSE = "its process died unexpectedly, without an error"

_STREAMS = tuple(Path(f"/proc/self/fd/{fd}") for fd in (2, 1))  # vLLM logs to stdout, Python to stderr
# Of Python, and of C++ where nothing catches it, as NCCL's watchdog has it.
_ERROR_LINE = re.compile(
    r"(?:^|\] )([\w.]*(?:Error|Exception): .*\S)\s*$|what\(\):\s+(.*\S)\s*$", re.MULTILINE
)
# vLLM's messages when another of its processes has the cause.
_POINTS_ELSEWHERE = ("initialization failed", "encountered an issue")
_KILLED = re.compile(r"Worker proc \S+ died unexpectedly \(exit code: -(\d+)\)")
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGBUS)  # of a process that had no error of its own before

_DIVIDE = "divide the model over more GPUs (tensor_parallel)"
_RAISE = "raise gpu_memory_utilization (without GPUs: kv_cache_memory_bytes)"
_GPU_IS_FULL = f"{_DIVIDE}, or lower max_num_seqs or gpu_memory_utilization"
_NODE_IS_FULL = (
    "a process was killed, as the kernel does where the memory of a node is short: have fewer replicas on a "
    "node, or on SLURM raise --mem in cluster.sbatch"
)
_REMEDIES = {
    "out of memory": _GPU_IS_FULL,
    "STATUS_ALLOC_FAILED": _GPU_IS_FULL,
    "No available memory for the cache blocks": f"{_RAISE}, or {_DIVIDE}",
    "larger than the available KV cache": f"lower max_model_len, {_RAISE}, or {_DIVIDE}",
    "exit code: -9)": _NODE_IS_FULL,
    NO_CAUSE: _NODE_IS_FULL,
    "exit code: -7)": "a bus error, as where /dev/shm is full: give a container 16 GiB (--shm-size=16g)",
    "NCCL": "GPUs that divide a model lost each other: NCCL_DEBUG=INFO shows where; keep tensor_parallel "
    "within a node, and see that /dev/shm is large enough",
    "less than desired GPU memory utilization": "another process holds memory there, which nvidia-smi "
    "shows: end it, or lower gpu_memory_utilization",
}
"""What to change, by the words of vLLM or torch for what went wrong."""


def use_all_threads() -> None:
    """Remove the limit of one thread that Ray sets for an actor without CPUs; keep a limit set by the user.

    vLLM's processes inherit the limit and would load the weights with one thread.
    """
    import ray

    environment = ray.get_runtime_context().runtime_env.get("env_vars") if ray.is_initialized() else None
    if os.environ.get(_THREADS) == "1" and _THREADS not in (environment or {}):
        del os.environ[_THREADS]


def with_remedy(reason: str) -> str:
    """Return the reason of a failed start or of a death; add what to change, if that is known."""
    remedy = next((remedy for words, remedy in _REMEDIES.items() if words in reason), None)
    return reason if remedy is None else f"{' '.join(reason.split())}; {remedy}"


def written_so_far() -> tuple[int, ...]:
    """Return the sizes in bytes of standard error and standard output, from which `root_cause` reads on.

    In a Ray actor both are files, and vLLM's processes inherit them. 0 for a stream that is not a file.
    """
    return tuple(stream.stat().st_size if stream.is_file() else 0 for stream in _STREAMS)


def root_cause(since: tuple[int, ...]) -> str | None:
    """Return the last informative error that was written after `since`; None without one."""
    texts = []
    for stream, start in zip(_STREAMS, since, strict=True):
        if stream.is_file():
            with stream.open("rb") as file:  # by its descriptor: the file may have been unlinked
                file.seek(start)
                texts.append(file.read().decode(errors="replace"))
    return cause_in("\n".join(texts))


def cause_in(text: str) -> str | None:
    """Return the last informative error of a log, without vLLM's prefix of process, time and source line.

    None without one. Errors that only point to another process are not informative. What follows the end of a
    killed process follows from it, and so does what precedes it if the process was killed from outside.
    """
    killed = _KILLED.search(text)
    if killed and int(killed[1]) in _FROM_OUTSIDE:
        return killed[0]
    before = text[: killed.start()] if killed else text
    lines = [python or cpp for python, cpp in _ERROR_LINE.findall(before)]
    errors = [line for line in lines if not any(words in line for words in _POINTS_ELSEWHERE)]
    return errors[-1] if errors else killed and killed[0]


def failure_of(error: Exception, *, dead: bool) -> EngineDeadError | RequestError:
    """Return the failure to raise for an error of one request; `dead` is vLLM's own report on its engine.

    vLLM 0.32 wraps every error that its processors and its core raise for one request in
    EngineGenerateError, and derives its own refusals from VLLMClientError, which is no ValueError. The engine
    survives all of these.
    """
    from vllm.exceptions import VLLMClientError
    from vllm.v1.engine.exceptions import EngineDeadError as Dead
    from vllm.v1.engine.exceptions import EngineGenerateError

    if dead or isinstance(error, Dead):
        return EngineDeadError(str(error) or "the engine process died")
    refused = isinstance(error, VLLMClientError | ValueError)
    if isinstance(error, EngineGenerateError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    message = " ".join(f"{type(error).__name__}: {error}".split())[:_LONGEST]
    return RequestError(ErrorKind.REJECTED if refused else ErrorKind.FAILED, message)
