"""The terminal that everything is printed on."""

import sys

from rich.console import Console

_PIPE_WIDTH = 120  # columns where the output goes to a file

console = Console(highlight=False)
if not console.is_terminal:
    console = Console(highlight=False, width=_PIPE_WIDTH)


def say(line: str) -> None:
    """One line of result."""
    print(line, flush=True, file=sys.stdout)
