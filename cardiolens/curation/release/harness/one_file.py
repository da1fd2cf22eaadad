"""One Python file that scores replies without this package: the reader of replies, and the scoring."""

import ast
from pathlib import Path

from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.protocol import replies

_MOST_BYTES = 1 << 20
_MODULES = ("reply_words", "json_objects", "visible_reply", "marks", "answer_values", "strict_reading")
_HEAD = '''"""Score replies to choice questions, as a sweep of CardioLens reads them.

{about}

This file needs nothing but Python. It is made of several modules of CardioLens.
"""
'''


def with_reader(scoring: Path) -> str:
    """The text of a scoring module behind the modules of the reader, from which it imports."""
    folder = Path(next(iter(replies.__path__)))
    paths = [*(folder / f"{name}.py" for name in _MODULES), scoring]
    bodies = [_body(read_bytes(path, _MOST_BYTES).decode()) for path in paths]
    return _HEAD.format(about=replies.__doc__.strip()) + "\n".join(bodies)


def _body(source: str) -> str:
    """A module without its docstring and without what it imports of this package."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        is_own = isinstance(node, ast.ImportFrom) and str(node.module).startswith("cardiolens.")
        if is_docstring or is_own:
            del lines[node.lineno - 1 : node.end_lineno]
    return "".join(lines)
