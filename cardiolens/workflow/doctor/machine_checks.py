"""GPUs, driver, compiler, memory and disk of this machine."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.runtime.guard import folder_of_sockets
from cardiolens.runtime.nvidia_smi import gib, gpu_rows
from cardiolens.workflow.doctor import sum_over_gpus
from cardiolens.workflow.doctor.check import Check, State, check_of

_DRIVERS: Final = {"12": 525, "13": 580}  # oldest driver of a CUDA major version (NVIDIA, CUDA Compatibility)
_GIB: Final = 2**30
_SHM_GIB: Final = 1.0  # an engine over several GPUs exchanges through it; containers have 64 MiB by default
_AMPLE_SHM_GIB: Final = 16.0  # with Ray's objects beside it
_FREE_GIB: Final = 10.0  # completions, Ray's spilled frames, and what compilers write
_NCCL_SECONDS: Final = 120.0


def machine_checks(spec: SweepSpec, cuda: str | None) -> Iterator[Check]:
    """Look at this machine; `cuda` is the version that the installed engine was built for, None on CPU."""
    if cuda is not None:
        yield from _gpus(cuda, max(map(_share_wanted, spec.model), default=0.9))
        yield _compiler()
        yield _flashinfer()
    yield _shared_memory()
    if spec.cluster.address is None:
        yield check_of("sockets of Ray", lambda: f"below {folder_of_sockets(os.environ)}")
    temporary = Path(os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp")
    for name, folder in (("store", spec.store), ("outputs", spec.outputs), ("temporary files", temporary)):
        yield _disk(name, folder)


def cuda_of_torch() -> str | None:
    """The CUDA version that the installed torch was built for, e.g. 13.0, without importing torch.

    Its own file tells: the number of the package does only where it came from an index of its makers.
    """
    torch = find_spec("torch")
    if torch is None or torch.origin is None:
        return None
    try:
        text = read_text(Path(torch.origin).parent / "version.py")
    except (OSError, UnicodeError):
        return None
    found = re.search(r"""^cuda\b[^=\n]*=\s*['"]([\d.]+)['"]""", text, re.MULTILINE)
    return found[1] if found else None


def _share_wanted(model: ModelSpec) -> float:
    """The share of a GPU's memory that an engine of this model wants to be free."""
    return model.gpu_memory_utilization * (model.fraction or 1.0) if model.engine == "vllm" else 0.0


def _gpus(cuda: str, wanted: float) -> Iterator[Check]:
    """Look at the GPUs that this process may use."""
    gpus = gpu_rows(("name", "driver_version", "memory.free", "memory.total"))
    if not gpus:
        text = "nvidia-smi lists none that may be used (CUDA_VISIBLE_DEVICES), or does not answer"
        yield Check("GPUs", "fix", f"{text}; install the driver, or run where there are GPUs")
        return
    driver, oldest = gpus[0][1], _DRIVERS.get(cuda.partition(".")[0])
    major = driver.partition(".")[0]
    if oldest is not None and not (major.isdigit() and int(major) >= oldest):
        text = (
            f"{driver} is too old for CUDA {cuda}; ask for r{oldest} or later, or a build for an older CUDA"
        )
        yield Check("driver", "fix", text)
    else:
        yield Check("driver", "ok", f"{driver}, for CUDA {cuda}")
    for number, (name, _, free_cell, total_cell) in enumerate(gpus):
        free, total = gib(free_cell), gib(total_cell)
        if free is None or total is None:
            text = f"{name} does not tell its memory ({total_cell}); declare cluster.gpu_memory_gib"
            yield Check(f"GPU {number}", "note", text)
            continue
        text = f"{name}, {free:.1f} of {total:.1f} GiB free"
        if free < wanted * total:
            text += f"; an engine wants {wanted:.0%}: end what runs there (nvidia-smi), or lower "
            yield Check(f"GPU {number}", "fix", f"{text}gpu_memory_utilization")
        else:
            yield Check(f"GPU {number}", "ok", text)
    if len(gpus) > 1:
        yield _nccl(len(gpus))


def _nccl(gpus: int, *backend: str) -> Check:
    """Sum over all GPUs once."""
    program = subprocess.Popen(
        [sys.executable, "-m", sum_over_gpus.__name__, str(gpus), *backend],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        _, errors = program.communicate(timeout=_NCCL_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(
            program.pid, signal.SIGKILL
        )  # with the processes of the GPUs, which would keep their memory
        program.communicate()
        text = f"{gpus} GPUs did not sum within {_NCCL_SECONDS:g} s; NCCL_DEBUG=INFO tells where, "
        return Check("NCCL", "fix", f"{text}NCCL_P2P_DISABLE=1 avoids a broken link")
    if program.returncode:
        reason = (errors.strip().splitlines() or ["no message"])[-1]
        return Check("NCCL", "fix", f"{gpus} GPUs cannot sum ({reason}); NCCL_DEBUG=INFO tells where")
    return Check("NCCL", "ok", f"{gpus} GPUs sum")


def _compiler() -> Check:
    """Triton compiles a small library at its first use, with the machine's compiler and Python's headers."""
    named = os.environ.get("CC")
    compiler = shutil.which(named) if named else shutil.which("gcc") or shutil.which("clang")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if compiler is None:
        text = f"CC={named} is no program: unset it, or name one" if named else "install gcc, or set CC"
        return Check("compiler", "fix", f"Triton needs gcc at its first use; {text}")
    if not header.exists():
        return Check("compiler", "fix", f"Triton needs {header}; install the headers, e.g. python3-dev")
    return Check("compiler", "ok", f"{compiler}, with Python's headers")


def _flashinfer() -> Check:
    if find_spec("flashinfer") is not None:
        return Check("FlashInfer", "ok", "present")
    return Check("FlashInfer", "note", "absent: vLLM takes other kernels, and nothing needs to be done")


def _shared_memory() -> Check:
    free = shutil.disk_usage("/dev/shm").free / _GIB if Path("/dev/shm").is_dir() else 0.0
    if free < _SHM_GIB:
        text = f"{free:.2f} GiB free, {_SHM_GIB:g} GiB wanted; give a container more (--ipc=host, --shm-size)"
        return Check("/dev/shm", "fix", text)
    state: State = "ok" if free >= _AMPLE_SHM_GIB else "note"
    return Check(
        "/dev/shm", state, f"{free:.1f} GiB free" + f", {_AMPLE_SHM_GIB:g} are ample" * (state == "note")
    )


def _disk(name: str, folder: Path) -> Check:
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if os.path.exists(path))
    subject = f"disk of {name}"
    if not os.path.isdir(there):
        return Check(subject, "fix", f"{there} is no folder; name another")
    if not os.access(there, os.W_OK | os.X_OK):
        return Check(subject, "fix", f"{there} cannot be written; name another folder")
    free = shutil.disk_usage(there).free / _GIB
    if free < _FREE_GIB:
        return Check(subject, "note", f"{free:.1f} GiB free in {there}: free space before a long run")
    return Check(subject, "ok", f"{free:.0f} GiB free in {there}")
