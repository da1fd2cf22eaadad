"""Elements of a page as values: tables of cells, sections, cards. No HTML, no files."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml

Cell = str | int | float | bool | None
Record = dict[str, Any]  # fields of a row by name
Kind = Literal["text", "count", "score", "points", "p", "number"]
"""Format of a cell: score and points have one decimal, points a sign, p three decimals."""
Reading = Literal["claimed", "equivalent", "open", "explored"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; `name` is the field's name in charts and in the CSV file."""

    name: str
    title: str
    kind: Kind = "text"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; None is shown as undefined."""

    name: str  # unique in a page
    title: str
    columns: tuple[Column, ...]
    rows: Sequence[tuple[Cell, ...]]

    @staticmethod
    def of(name: str, records: Iterable[Record]) -> "Table":
        """Make a table of `tables.yaml` of records.

        A missing field is undefined, a field without a column is left out; a sparse table has only columns
        that some record has.
        """
        table, columns, records = described("tables.yaml")[name], columns_of(name), list(records)
        if table.get("sparse"):
            fields = {field for record in records for field in record}
            columns = [column for column in columns if column.name in fields]
        rows = [tuple(_cell(record.get(column.name)) for column in columns) for record in records]
        return Table(name, table["title"], tuple(columns), rows)

    def records(self) -> Iterator[Record]:
        """Yield the rows by the names of their columns."""
        names = [column.name for column in self.columns]
        return (dict(zip(names, row, strict=True)) for row in self.rows)


def columns_of(table: str) -> list[Column]:
    """The columns that `tables.yaml` gives a table."""
    groups = described("tables.yaml")[table]["columns"]
    return [
        Column(field, title, kind)
        for group in groups
        for kind, titles in group.items()
        for field, title in titles.items()
    ]


@cache
def described(file: str) -> dict[str, Any]:
    """What a file of the page describes, by name: `tables.yaml`, `sections.yaml` or `print_theme.yaml`."""
    tree: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(file).read_text("utf-8"))
    return tree


def _cell(value: object) -> Cell:
    """A value as JSON has it; an undefined number is None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page: its question, the tables that have rows, and the figures drawn over some of them.

    A figure is what `sections.yaml` says of it, with its title, choices and note.
    """

    name: str
    title: str
    question: str
    figures: tuple[Mapping[str, Any], ...]
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    is_folded: bool


@dataclass(frozen=True, slots=True)
class Estimate:
    """Number with its interval, for the drawings of the first screen."""

    label: str
    value: float
    low: float
    high: float
    tone: Reading = "open"
    models: tuple[float, ...] = ()  # the values of the models over which it is pooled


@dataclass(frozen=True, slots=True)
class Card:
    """One question of the paper: the result in a few words, a sentence with its numbers, a drawing."""

    name: str
    question: str
    verdict: str
    sentence: str
    estimates: tuple[Estimate, ...] = ()
    differences: bool = True  # True: drawn around zero; False: drawn from 0 to 100
    unit: Literal["points", "z"] = "points"  # of a difference; z: of a signal detector's criterion
    has_band: bool = True  # whether two points of it count as nothing
