"""Elements of a page as values: tables of cells, charts over them, sections. No HTML, no files."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cardiolens.score.claims.evidence_analysis import interval_of
from cardiolens.score.claims.sentences import Finding

Cell = str | int | float | bool | None
Kind = Literal["text", "count", "score", "points", "p", "number"]
"""Format of a cell: score and points have one decimal, points a sign, p three decimals."""
Tone = Literal["shown", "equivalent", "open", "explored"]


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
    def of(
        name: str, title: str, columns: Sequence[Column], records: Sequence[Mapping[str, object]]
    ) -> "Table":
        """Make a table of records; a missing field is undefined, a field without a column is left out."""
        rows = [tuple(_cell(record.get(column.name)) for column in columns) for record in records]
        return Table(name, title, tuple(columns), rows)


def _cell(value: object) -> Cell:
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


@dataclass(frozen=True, slots=True)
class Chart:
    """Vega-Lite chart of `charts/<form>.json` over the rows of a table.

    `where` restricts the rows to those with these cell values; for each column of `choices` the reader of the
    page picks one value.
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
    """Coloured grid over a table: one row per value of `down`, one column per value of `across`."""

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
    """One part of a page: its question, findings, figures and tables."""

    name: str
    title: str
    question: str
    findings: tuple[Finding, ...] = ()
    figures: tuple[Chart | Grid, ...] = ()
    tables: tuple[Table, ...] = ()  # besides those of the figures
    notes: tuple[str, ...] = ()
    absent: str = ""  # reason why an empty section shows nothing

    @property
    def is_empty(self) -> bool:
        """Return whether it has only its reason to show."""
        return not (self.findings or self.figures or self.tables or self.notes)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Number with its interval, for the drawings of the first screen."""

    label: str
    value: float
    low: float
    high: float
    tone: Tone = "open"
    models: tuple[float, ...] = ()  # the values of the models over which it is pooled

    @staticmethod
    def of(
        label: str, row: Mapping[str, object], tone: Tone = "open", models: tuple[float, ...] = ()
    ) -> "Estimate":
        """The estimate of a row, with its interval if that is one to rely on."""
        interval = interval_of(row)
        return Estimate(label, interval.value, interval.low, interval.high, tone, models)


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer to one question of the paper: a short verdict, a sentence with its numbers, a drawing."""

    name: str
    question: str
    verdict: str
    sentence: str
    estimates: tuple[Estimate, ...] = ()
    differences: bool = True  # True: drawn around zero; False: drawn from 0 to 100
    unit: Literal["points", "z"] = "points"  # of a difference; z: of a signal detector's criterion
    has_band: bool = True  # whether two points of it count as nothing
