"""What a page shows, as values: tables of cells, charts over them, sections. No HTML, no files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.findings.sentences import Finding

Cell = str | int | float | bool | None
Kind = Literal["text", "count", "score", "points", "p", "number"]
"""How a cell is written: score and points have one decimal, points a sign, p three decimals."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table; `name` is that of the field in charts and in the CSV file."""

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
    def of(
        name: str, title: str, columns: Sequence[Column], records: Sequence[Mapping[str, object]]
    ) -> "Table":
        """A table of records; a field that a record lacks is undefined, one without column is left out."""
        rows = [tuple(_cell(record.get(column.name)) for column in columns) for record in records]
        return Table(name, title, tuple(columns), rows)


def _cell(value: object) -> Cell:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


@dataclass(frozen=True, slots=True)
class Chart:
    """A Vega-Lite chart of `charts/<form>.json` over the rows of a table.

    `where` keeps the rows whose cells have these values; for each column of `choices` the reader of the page
    picks one value.
    """

    name: str
    title: str
    form: str
    table: Table
    where: Mapping[str, str] | None = None
    choices: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table turned into a coloured grid: a row for each value of `down`, a column for each of `across`."""

    name: str
    title: str
    table: Table
    down: str
    across: str
    value: str
    choices: tuple[str, ...] = ()
    normalised: bool = False  # coloured by the share of its row, not by its value in percent
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One part of a page: what it asks, what can be said, what is to be seen."""

    name: str
    title: str
    question: str
    findings: tuple[Finding, ...] = ()
    figures: tuple[Chart | Grid, ...] = ()
    tables: tuple[Table, ...] = ()  # beyond those of figures
    notes: tuple[str, ...] = ()
    absent: str = ""  # why there is nothing to see, if so


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, for the drawings of the first screen."""

    label: str
    value: float
    low: float
    high: float
    tone: Literal["shown", "equivalent", "open"] = "open"


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to one question of the paper: a few words, a sentence with its numbers, a drawing."""

    name: str
    question: str
    verdict: str
    sentence: str
    estimates: tuple[Estimate, ...] = ()
    differences: bool = True  # drawn around zero, else from 0 to 100
