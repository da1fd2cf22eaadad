"""A plan that is on disk already: written from the same inputs by the same code, it is not made again."""

import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import cardiolens
from cardiolens import tables
from cardiolens.digest import digest_of, digest_of_tree

_NOTE = "plan.json"


def digest_of_inputs(*inputs: Any) -> str:
    """32 hex digits of everything that decides a plan, this package included."""
    return digest_of([*inputs, _code()])


@dataclass(frozen=True, slots=True)
class Written:
    """What the requests of one model amount to."""

    status_counts: Counter[str]
    most_frames: int  # that one request shows


def kept(folder: Path, digest: str) -> Written | None:
    """The plan in a folder, None unless it is whole and made from these inputs."""
    try:
        note = json.loads((folder / _NOTE).read_text())
        if note["digest"] != digest or note["parts"] != _sizes(folder):
            return None
        return Written(Counter(note["status_counts"]), note["most_frames"])
    except (OSError, ValueError, LookupError, TypeError):  # no note, or not one of ours
        return None


def keep(folder: Path, digest: str, written: Written) -> None:
    """Note what the plan in a folder was made from; without the note it counts as unfinished."""
    note = {
        "digest": digest,
        "status_counts": written.status_counts,
        "most_frames": written.most_frames,
        "parts": _sizes(folder),
    }
    tables.write_text(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def _sizes(folder: Path) -> dict[str, int]:
    return {part.name: part.stat().st_size for part in tables.parts(folder)}


@cache
def _code() -> str:
    return digest_of_tree(Path(cardiolens.__file__).parent)
