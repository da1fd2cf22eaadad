"""The names that the page of a run prints: titles of columns and sections, words for what is stored."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import yaml

_BOARD = "standings"  # the table of the leaderboard
PAGE = Path(__file__).resolve().parents[2] / "cardiolens" / "show" / "page"


@cache
def printed_names() -> frozenset[str]:
    """All of them, as the code writes them; blank titles are none."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in sorted(PAGE.rglob("*.py"))]
    tables = yaml.safe_load((PAGE / "tables.yaml").read_text(encoding="utf-8"))
    groups = [group for name, table in tables.items() if name != _BOARD for group in table["columns"]]
    columns = {title for group in groups for titles in group.values() for title in titles.values()}
    maps = [
        of
        for table in tables.values()
        for of in (table.get("measures", {}), *table.get("words", {}).values())
    ]
    words = {word for of in maps for word in of.values()}
    sections = yaml.safe_load((PAGE / "sections.yaml").read_text(encoding="utf-8"))
    titles = {section["title"] for section in sections.values()}
    return frozenset(columns.union(words, titles, *map(_words, trees)) - {""})


def _words(tree: ast.Module) -> Iterator[str]:
    """Values of the mappings of a module from what is stored to what is printed; sentences are no names."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Dict):
            values = [value.value for value in node.value.values if isinstance(value, ast.Constant)]
            words = (value for value in values if isinstance(value, str) and value[:1].isalpha())
            yield from (word for word in words if not word.endswith("?"))
