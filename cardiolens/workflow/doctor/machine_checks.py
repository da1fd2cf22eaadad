"""GPUs, driver, compiler, memory and disk of this machine."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from cardiolens.config.sweep import SweepSpec
from cardiolens.workflow.doctor.check import Check, State

_DRIVERS: Final = {"12": 525, "13": 580}  # oldest driver of a CUDA major version (NVIDIA, CUDA Compatibility)
_GIB: Final = 2**30
_SHM_GIB: Final = 1.0  # an engine over several GPUs exchanges through it; containers have 64 MiB by default
_AMPLE_SHM_GIB: Final = 16.0  # with Ray's objects beside it
_FREE_GIB: Final = 10.0  # completions, Ray's spilled frames, and what compilers write
_GPU_QUERY: Final = ("nvidia-smi", "--query-gpu=name,driver_version,memory.free,memory.total")
_NCCL_SECONDS: Final = 120.0
_NCCL: Final = """
import os, sys, torch, torch.distributed as dist, torch.multiprocessing as mp
def work(rank, n):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=n)
    ones = torch.ones(1 << 20, device="cuda")
    dist.all_reduce(ones)
    assert ones[0].item() == n
    dist.destroy_process_group()
if __name__ == "__main__":
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[2])
    mp.spawn(work, args=(int(sys.argv[1]),), nprocs=int(sys.argv[1]))
"""


def machine_checks(spec: SweepSpec, cuda: str | None) -> Iterator[Check]:
    """Look at this machine; `cuda` is the version that the installed engine was built for, None on CPU."""
    if cuda is not None:
        yield from _gpus(cuda, max((model.gpu_memory_utilization for model in spec.model), default=0.9))
        yield _compiler()
        yield _flashinfer()
    yield _shared_memory()
    for name, folder in (("store", spec.store), ("outputs", spec.outputs), ("temporary files", Path("/tmp"))):
        yield _disk(name, folder)


def cuda_of_torch() -> str | None:
    """The CUDA version that the installed torch was built for, e.g. 13.0, without importing torch."""
    try:
        flavour = version("torch").partition("+")[2]
    except PackageNotFoundError:
        return None
    found = re.fullmatch(r"cu(\d+)(\d)", flavour)
    return f"{found[1]}.{found[2]}" if found else None


def _gpus(cuda: str, utilization: float) -> Iterator[Check]:
    lines = _printed((*_GPU_QUERY, "--format=csv,noheader,nounits"))
    if not lines:
        yield Check("GPUs", "fix", "nvidia-smi lists none; install the driver, or run where there are GPUs")
        return
    gpus = [[part.strip() for part in line.split(",")] for line in lines]
    driver, oldest = gpus[0][1], _DRIVERS.get(cuda.partition(".")[0])
    if oldest is not None and int(driver.partition(".")[0]) < oldest:
        text = (
            f"{driver} is too old for CUDA {cuda}; ask for r{oldest} or later, or a build for an older CUDA"
        )
        yield Check("driver", "fix", text)
    else:
        yield Check("driver", "ok", f"{driver}, for CUDA {cuda}")
    for number, (name, _, free, total) in enumerate(gpus):
        text = f"{name}, {float(free) / 1024:.1f} of {float(total) / 1024:.1f} GiB free"
        if float(free) < utilization * float(total):
            text += f"; an engine wants {utilization:.0%}: end what runs there (nvidia-smi), or lower "
            yield Check(f"GPU {number}", "fix", f"{text}gpu_memory_utilization")
        else:
            yield Check(f"GPU {number}", "ok", text)
    if len(gpus) > 1:
        yield _nccl(len(gpus))


def _nccl(gpus: int) -> Check:
    """Sum over all GPUs once, as tensor parallel engines do at every layer."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _NCCL, str(gpus), "29511"],
            capture_output=True,
            text=True,
            check=False,
            timeout=_NCCL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        text = f"{gpus} GPUs did not sum within {_NCCL_SECONDS:g} s; NCCL_DEBUG=INFO tells where, "
        return Check("NCCL", "fix", f"{text}NCCL_P2P_DISABLE=1 avoids a broken link")
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return Check("NCCL", "fix", f"{gpus} GPUs cannot sum ({reason}); NCCL_DEBUG=INFO tells where")
    return Check("NCCL", "ok", f"{gpus} GPUs sum")


def _compiler() -> Check:
    """Triton compiles a small library at its first use, with the machine's compiler and Python's headers."""
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang")
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    if compiler is None:
        return Check("compiler", "fix", "Triton needs gcc at its first use; install gcc, or set CC")
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
    there = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    subject = f"disk of {name}"
    if not os.access(there, os.W_OK):
        return Check(subject, "fix", f"{there} cannot be written; name another folder")
    free = shutil.disk_usage(there).free / _GIB
    if free < _FREE_GIB:
        return Check(subject, "note", f"{free:.1f} GiB free in {there}: free space before a long run")
    return Check(subject, "ok", f"{free:.0f} GiB free in {there}")


def _printed(command: Sequence[str]) -> list[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return []
