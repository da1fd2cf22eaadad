"""Why vLLM's own processes failed: what they wrote where this process writes its errors too."""

import os
import re
from pathlib import Path

_ERRORS = Path("/proc/self/fd/2")  # of an actor a file, which the processes that it starts inherit
_SAID = re.compile(r"(?:^|\] )([\w.]*(?:Error|Exception): .*\S)\s*$", re.MULTILINE)
_POINTS_ELSEWHERE = ("initialization failed",)  # vLLM's words for "another of my processes knows why"


def errors_so_far() -> int:
    """Bytes that were written to this process' errors, from which `root_cause` reads on; 0 without a file."""
    try:
        return _ERRORS.stat().st_size if _ERRORS.is_file() else 0
    except OSError:
        return 0


def root_cause(since: int) -> str | None:
    """The last error told since then that says more than that something failed; None where nothing does."""
    try:
        if not _ERRORS.is_file():
            return None
        with Path(os.readlink(_ERRORS)).open("rb") as file:
            file.seek(since)
            return cause_in(file.read().decode(errors="replace"))
    except OSError:
        return None


def cause_in(text: str) -> str | None:
    """The last error in a log, vLLM's prefix of process, time and place left out."""
    said = [line for line in _SAID.findall(text) if not any(words in line for words in _POINTS_ELSEWHERE)]
    return said[-1] if said else None
