"""torchvision's Python code in a folder of its own, beside the CPU build of torch.

python -m tests.families.torchvision_for_cpu FOLDER; then PYTHONPATH=FOLDER runs the families that need it.

Package indexes have it for CUDA only. Its compiled operators cannot be loaded beside a CPU build, and its
import fails when it describes two of them (nms, qnms) that are then unknown. They are declared here, without
a body; what resizes and normalizes images is Python on torch, and runs.
"""

import subprocess
import sys
from pathlib import Path

VERSION = "0.28.0"  # as in requirements/gpu.txt, for the pinned torch
_DECLARED = """
if not _has_ops():
    _declared = torch.library.Library("torchvision", "DEF")
    for _name in ("nms", "qnms"):
        _declared.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
"""


def install(folder: Path) -> None:
    """Download the package into an empty folder, and declare the operators."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(folder)]
    subprocess.run([*command, f"torchvision=={VERSION}"], check=True)
    extension = folder / "torchvision" / "extension.py"
    extension.write_text(extension.read_text() + _DECLARED)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
