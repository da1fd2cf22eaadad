"""Values inside a page: JSON that no text can break out of, and large tables as scripts beside it."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cardiolens.page.elements import Cell, Chart, Grid, Section, Table

CHUNK_BYTES = 200_000  # a larger table stands in a file of its own, loaded when it is looked at
CHUNKS = "page"  # folder beside the page

_ESCAPES = {
    "<": "\\u003c",
    ">": "\\u003e",
    "&": "\\u0026",
    "\u2028": "\\u2028",
    "\u2029": "\\u2029",
}


@dataclass(frozen=True, slots=True)
class Embedded:
    """A table as the page holds it: its JSON, or the file that brings it."""

    name: str
    title: str
    n_rows: int
    json: str
    chunk: str  # path beside the page; empty where the JSON stands in it

    @property
    def script(self) -> str:
        """The content of the chunk: a call that hands the table to the page."""
        return f"cardiolens.receive({to_json(self.name)},{self.json});\n"


def to_json(value: object) -> str:
    """JSON that may stand inside a script element; undefined numbers are null."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, escaped in _ESCAPES.items():  # str.translate takes 5 s for 10 MB
        text = text.replace(character, escaped)
    return text


def embed(table: Table) -> Embedded:
    """A table as JSON, beside the page if it is large."""
    columns = [[column.name, column.title, column.kind] for column in table.columns]
    rows = [[_defined(cell) for cell in row] for row in table.rows]
    text = to_json({"title": table.title, "columns": columns, "rows": rows})
    chunk = f"{CHUNKS}/{table.name}.js" if len(text) > CHUNK_BYTES else ""
    return Embedded(table.name, table.title, len(rows), text, chunk)


def _defined(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def tables_of(sections: Sequence[Section]) -> Mapping[str, Table]:
    """Every table of a page by name, once."""
    found: dict[str, Table] = {}
    for section in sections:
        for figure in section.figures:
            found.setdefault(figure.table.name, figure.table)
        for table in section.tables:
            found.setdefault(table.name, table)
    return found


def figure_json(figure: Chart | Grid) -> str:
    """What the page's script needs to know of a figure, its table by name."""
    if isinstance(figure, Grid):
        kept = {name: getattr(figure, name) for name in ("down", "across", "value", "normalised")}
    else:
        kept = {"form": figure.form, "where": dict(figure.where or {})}
    told = {"table": figure.table.name, "choices": list(figure.choices), "title": figure.title}
    return to_json({**told, **kept})
