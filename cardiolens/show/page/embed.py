"""Embedding of values in a page: escaped JSON, and scripts beside the page for large tables."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cardiolens.show.page.elements import Cell, Table

CHUNK_BYTES = 200_000  # a larger table has a file of its own, loaded when the reader opens it
_MIN_REPEATS = 4  # mean repeats of a value from which a column is dictionary-encoded
CHUNKS = "page"  # folder beside the page


@dataclass(frozen=True, slots=True)
class EmbeddedTable:
    """A table as JSON, and the file that holds the JSON if it is large."""

    name: str
    title: str
    n_rows: int
    json: str
    chunk: str  # path beside the page; empty if the page itself holds the JSON

    @property
    def script(self) -> str:
        """Content of the chunk: a call that hands the table to the page."""
        return f"cardiolens.receive({to_json(self.name)},{self.json});\n"


def to_json(value: object) -> str:
    """Write JSON that is safe inside a script element; NaN is refused."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":  # str.translate takes 5 s for 10 MB
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def embed(table: Table, *, one_file: bool = False) -> EmbeddedTable:
    """Turn a table into JSON; a large one gets a chunk beside the page.

    `one_file`: the page itself holds it, however large.
    """
    columns = [[column.name, column.title, column.kind] for column in table.columns]
    head = {"title": table.title, "columns": columns}
    text = to_json({**head, "rows": table.rows})
    chunk = f"{CHUNKS}/{table.name}.js" if len(text) > CHUNK_BYTES and not one_file else ""
    if chunk:
        text = to_json({**head, "cells": [_encode_column(cells) for cells in zip(*table.rows, strict=True)]})
    return EmbeddedTable(table.name, table.title, len(table.rows), text, chunk)


def _encode_column(cells: Sequence[Cell]) -> dict[str, list[Cell]]:
    """Encode a column: distinct cells in `values`, indices in `at`; plain `values` if few repeat."""
    places: dict[tuple[type, Cell], int] = {}
    at: list[Cell] = [places.setdefault((type(cell), cell), len(places)) for cell in cells]
    if len(places) * _MIN_REPEATS > len(cells):
        return {"values": list(cells)}
    return {"values": [cell for _, cell in places], "at": at}
