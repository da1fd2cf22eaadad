"""The console of all terminal output."""

import sys

from rich.console import Console

_PIPE_WIDTH = 120  # columns if the output goes to a file or pipe

console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=_PIPE_WIDTH)


def say(line: str) -> None:
    """Print one line to stdout at once."""
    print(line, flush=True, file=sys.stdout)
