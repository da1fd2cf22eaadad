"""Why vLLM's own processes failed: what they wrote where this process writes too."""

import os
import re
from pathlib import Path

_WRITTEN = tuple(Path(f"/proc/self/fd/{fd}") for fd in (1, 2))  # vLLM logs to the first, Python to the second
_SAID = re.compile(r"(?:^|\] )([\w.]*(?:Error|Exception): .*\S)\s*$", re.MULTILINE)
_POINTS_ELSEWHERE = ("initialization failed",)  # vLLM's words for "another of my processes knows why"


def written_so_far() -> tuple[int, ...]:
    """Bytes of output and of errors, from which `root_cause` reads on; 0 where they are no file.

    Those of an actor are files, which the processes that it starts inherit.
    """
    return tuple(stream.stat().st_size if stream.is_file() else 0 for stream in _WRITTEN)


def root_cause(since: tuple[int, ...]) -> str | None:
    """The last error told since then that says more than that something failed; None where nothing does."""
    for stream, start in zip(_WRITTEN, since, strict=True):
        if stream.is_file():
            with Path(os.readlink(stream)).open("rb") as file:
                file.seek(start)
                found = cause_in(file.read().decode(errors="replace"))
            if found is not None:
                return found
    return None


def cause_in(text: str) -> str | None:
    """The last error in a log, vLLM's prefix of process, time and place left out."""
    said = [line for line in _SAID.findall(text) if not any(words in line for words in _POINTS_ELSEWHERE)]
    return said[-1] if said else None
