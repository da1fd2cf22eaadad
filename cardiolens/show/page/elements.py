"""Elements of a page as values: tables of cells, charts over them, sections. No HTML, no files."""

from collections.abc import Iterable, Mapping, Sequence
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
    """Rows under columns; NaN and None are shown as undefined."""

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
        table, records = described("tables.yaml")[name], list(records)
        columns = [
            Column(field, title, kind)
            for group in table["columns"]
            for kind, titles in group.items()
            for field, title in titles.items()
        ]
        if table.get("sparse"):
            fields = {field for record in records for field in record}
            columns = [column for column in columns if column.name in fields]
        rows = [tuple(_cell(record.get(column.name)) for column in columns) for record in records]
        return Table(name, table["title"], tuple(columns), rows)


@cache
def described(file: str) -> dict[str, Any]:
    """What a file of the page describes, by name: `tables.yaml` or `sections.yaml`."""
    tree: dict[str, Any] = yaml.safe_load(files(__package__).joinpath(file).read_text("utf-8"))
    return tree


def _cell(value: object) -> Cell:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


@dataclass(frozen=True, slots=True)
class Chart:
    """Chart of a form over the rows of a table, or a coloured grid.

    `where` restricts the rows to those with these cell values; for each column of `choices` the reader of the
    page picks one value. `grid` names the columns of a grid by `down`, `across` and `value`; a `normalised`
    one is coloured by the share of its row, not by its value in percent.
    """

    name: str
    title: str
    table: Table
    form: str = ""
    where: Mapping[str, str] | None = None
    choices: tuple[str, ...] = ()
    note: str = ""
    grid: Mapping[str, str | bool] | None = None

    @property
    def has_rows(self) -> bool:
        """Return whether the chart has something to draw."""
        names = [column.name for column in self.table.columns]
        wanted = [(names.index(name), value) for name, value in (self.where or {}).items()]
        return any(all(row[at] == value for at, value in wanted) for row in self.table.rows)


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page: its question, and the figures and tables that have rows."""

    name: str
    title: str
    question: str
    figures: tuple[Chart, ...] = ()
    tables: tuple[Table, ...] = ()  # besides those of the figures
    notes: tuple[str, ...] = ()
    is_folded: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether it has nothing to show."""
        return not (self.figures or self.tables)


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
