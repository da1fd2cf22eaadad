"""The console of all terminal output: nothing that is printed moves a cursor or opens a line of its own."""

import atexit
import os
import select
import shlex
import sys
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.text import Text

from cardiolens.base.sanitize import one_line

_PIPE_WIDTH = 120  # columns if the output goes to a file or pipe


class _PlainConsole(Console):
    """Console for tables of names as they are: brackets are no markup, control characters are escapes."""

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(one_line(text), **{**options, "markup": False, "emoji": False})


console = _PlainConsole(highlight=False)
if not console.is_terminal:
    console = _PlainConsole(highlight=False, width=_PIPE_WIDTH)


def say(line: str) -> None:
    """Print one line to stdout at once."""
    print(one_line(line), flush=True, file=sys.stdout)


def end_quietly_if_unread() -> None:
    """Have this process end without a traceback once nobody reads its output, as behind `| head`; code 1."""
    sys.excepthook = _except_hook
    atexit.register(_flush)  # what is short is written only now


def _flush() -> None:
    try:
        sys.stdout.flush()
    except BrokenPipeError as error:
        _except_hook(BrokenPipeError, error, error.__traceback__)


def _except_hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, BrokenPipeError) and not _is_read():
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes it again
    else:
        sys.__excepthook__(kind, error, trace)


def _is_read() -> bool:
    """Whether the output still has a reader: a pipe without one is in a state of error."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), 0)
    return not any(state & select.POLLERR for _, state in poll.poll(0))


def shown_word(name: str, value: object) -> str:
    """Return the word `name=value` of a command as a shell takes it when it is pasted."""
    return shlex.quote(f"{name}={value}")
