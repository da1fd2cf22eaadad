"""Python source, parsed."""

import ast
from contextlib import suppress

_TRIES = 5


def parsed(source: str | bytes) -> ast.Module:
    """Return the tree of a module's source; SyntaxError where it is none.

    Python 3.11 counts the depth of trees in one place: where the collector of garbage runs a finalizer
    that parses as well, as one that prints a traceback does, the outer parse ends with a SystemError about
    "recursion depth mismatch". The next try finds that garbage gone.
    """
    for _ in range(_TRIES - 1):
        with suppress(SystemError):
            return ast.parse(source)
    return ast.parse(source)
