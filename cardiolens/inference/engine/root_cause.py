"""Root cause of a failure in vLLM's own processes, read from the output that they share with this process."""

import re
from pathlib import Path

_STREAMS = tuple(Path(f"/proc/self/fd/{fd}") for fd in (1, 2))  # vLLM logs to the first, Python to the second
_ERROR_LINE = re.compile(r"(?:^|\] )([\w.]*(?:Error|Exception): .*\S)\s*$", re.MULTILINE)
_POINTS_ELSEWHERE = ("initialization failed",)  # vLLM's words for "another of my processes knows why"


def written_so_far() -> tuple[int, ...]:
    """Sizes in bytes of standard output and standard error, where `root_cause` starts to read.

    Both are files in a Ray actor, and the processes that it starts inherit them. 0 where one is no file.
    """
    return tuple(stream.stat().st_size if stream.is_file() else 0 for stream in _STREAMS)


def root_cause(since: tuple[int, ...]) -> str | None:
    """Last error written after `since` that says more than that something failed; None without one."""
    for stream, start in zip(_STREAMS, since, strict=True):
        if stream.is_file():
            with stream.open("rb") as file:  # by its descriptor: the name may be gone
                file.seek(start)
                cause = cause_in(file.read().decode(errors="replace"))
            if cause is not None:
                return cause
    return None


def cause_in(text: str) -> str | None:
    """Last error in a log, without vLLM's prefix of process, time and place; None without one."""
    lines = _ERROR_LINE.findall(text)
    errors = [line for line in lines if not any(words in line for words in _POINTS_ELSEWHERE)]
    return errors[-1] if errors else None
