"""What both task folders have: names of tasks, and files of ours that go with them."""

from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.untrusted.bounded_files import read_bytes

_FILES = Path(__file__).parent / "handed_out"
_MOST_BYTES = 1 << 20  # of a file of ours


def task_name(benchmark: str, split: str) -> str:
    """Return the name of a split's task: small letters, digits and underscores."""
    return f"{benchmark}_{split}".replace("-", "_")


def hand_out(folder: Path, *names: str) -> None:
    """Write files of ours into a task folder."""
    for name in names:
        disk.write_bytes(folder / name, read_bytes(_FILES / name, _MOST_BYTES))
