"""The console of all terminal output: nothing that is printed moves a cursor or opens a line of its own."""

import sys
from typing import Any

from rich.console import Console
from rich.text import Text

from cardiolens.base.sanitize import one_line

_PIPE_WIDTH = 120  # columns if the output goes to a file or pipe


class _PlainConsole(Console):
    """Console whose tables show names as they are: brackets are no markup, control characters are escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(one_line(text), **{**options, "markup": False, "emoji": False})


console = _PlainConsole(highlight=False)
if not console.is_terminal:
    console = _PlainConsole(highlight=False, width=_PIPE_WIDTH)


def say(line: str) -> None:
    """Print one line to stdout at once."""
    print(one_line(line), flush=True, file=sys.stdout)
