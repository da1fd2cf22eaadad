"""Source is parsed whatever the collector of garbage does meanwhile."""

import ast
import gc
from pathlib import Path

import pytest

from cardiolens.base import python_source
from cardiolens.base.python_source import parsed

SOURCE = Path(python_source.__file__).read_text()


class Parses:
    """Garbage in a cycle, whose finalizer parses."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        ast.parse("a = [b(c, d[e]) for b in f]")


def test_a_finalizer_that_parses_does_no_harm() -> None:
    thresholds = gc.get_threshold()
    wanted = ast.dump(ast.parse(SOURCE))
    gc.freeze()  # what all tests have made need not be looked through at each collection
    try:
        for threshold in range(20, 400, 7):
            gc.set_threshold(100_000)
            gc.collect()
            Parses()
            gc.set_threshold(threshold)
            assert ast.dump(parsed(SOURCE)) == wanted
    finally:
        gc.set_threshold(*thresholds)
        gc.unfreeze()


def test_what_is_no_source_is_said() -> None:
    with pytest.raises(SyntaxError):
        parsed("def")
