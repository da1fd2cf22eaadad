"""Columns of several examinations: of a table whose head names one of today, those of that one alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cardiolens.report_text.column_kinds import kind_of, names_rows

_BARS = re.compile(r"[ \t]*\|[ \t]*")
_GAPS = re.compile(r"[ \t]*\t[ \t]*| {2,}")
_MEASURE = re.compile(r"\d\s*(?:%|m[lm])|[:=]\s*\d")  # also of `2024: 34`
_RULE = re.compile(r"[\s|:+=_-]+")
_TIME = re.compile(
    r"\b(?:today|now|current|prior|prev\w*|last|before|after|old|baseline|earlier|ago|(?:19|20)\d\d)\b",
    re.IGNORECASE,
)
_KEPT = ("today", "value", "unit", "remark")
_NOTHING = re.compile(r"[\s–—-]*|n/?a|not (?:done|measured|assessed|available|performed)", re.IGNORECASE)
_GOES_ON = re.compile(r"[,;:/+&(-]\s*$|\b(?:and|with|or|of|the)\s*$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Head:
    """The head of a table: how its cells are kept apart, and what each column is of."""

    bars: bool
    is_led: bool  # whether a bar stands before the first cell
    kinds: tuple[str, ...]

    @property
    def is_understood(self) -> bool:
        """Whether it is told which one column is of today; one without a time is, beside earlier ones."""
        named = [kind for kind in self.kinds if kind in ("today", "value")]
        return "?" not in self.kinds and len(named) == 1


def of_columns(text: str) -> str:
    """Blank out the columns that are not of today; every letter that is left keeps its place."""
    lines = text.splitlines(keepends=True)
    head: _Head | None = None
    above: int | None = None  # the row before, which a row without a name goes on with
    for at, line in enumerate(lines):
        if opened := _head(line):
            is_second = head is not None and above is None  # two lines of one head
            head, above = replace(opened, kinds=("?",)) if is_second else opened, None
            lines[at] = _blank(line)
        elif head is not None and not _RULE.fullmatch(line):
            cells = _cells(line, bars=head.bars, is_led=head.is_led)
            if len(cells) < 2:
                head = None
            elif cells[0].text:
                lines[at], above = _row(line, cells, head), at
            else:
                head = replace(head, kinds=("?",)) if above is None else head
                lines[at] = _blank(line)
                named = at if above is None else above
                lines[named] = _blank(lines[named])
        elif not line.strip():
            head = None
    return "".join(lines)


def _head(line: str) -> _Head | None:
    """Return the head of a table with columns of times; None for any other line."""
    bars, is_led = "|" in line, line.lstrip().startswith("|")
    if not bars and not _GAPS.search(line.strip()):
        return None
    cells = _cells(line, bars=bars, is_led=False if bars and line[:1].isspace() else is_led)
    if len(cells) < 3 or any(_MEASURE.search(cell.text) for cell in cells[1:]):
        return None
    kinds = tuple(kind_of(cell.text) for cell in cells[1:])
    n_times = sum(_TIME.search(cell.text) is not None for cell in cells[1:])
    is_named = n_times > 0 and names_rows(cells[0].text)
    is_head = n_times > 1 or is_named or not {"today", "earlier"}.isdisjoint(kinds)
    return _Head(bars, is_led, kinds) if is_head else None


def _cells(line: str, *, bars: bool, is_led: bool) -> list[_Cell]:
    """Return the cells of a row, each with its place; the first may be empty."""
    row = line.rstrip()
    start = row.index("|") + 1 if bars and is_led and "|" in row else 0
    end = len(row) - 1 if bars and row.endswith("|") else len(row)
    cells, place = [], start
    lead = len(row) - len(row.lstrip()) if not bars else 0
    if lead > 3:
        cells.append(_Cell("", 0, 0))  # an indented row has no name
    place = max(place, lead)
    for gap in (_BARS if bars else _GAPS).finditer(row, place, end):
        cells.append(_Cell(row[place : gap.start()].strip(), place, gap.start()))
        place = gap.end()
    return [*cells, _Cell(row[place:end].strip(), place, end)]


def _row(line: str, cells: Sequence[_Cell], head: _Head) -> str:
    """The name of a row and what it says of today; nothing where that is not told."""
    if not head.is_understood or len(cells) != len(head.kinds) + 1:
        return _blank(line)
    kept = [cell for cell, kind in zip(cells[1:], head.kinds, strict=True) if kind in _KEPT]
    value = next(cell for cell, kind in zip(cells[1:], head.kinds, strict=True) if kind in ("today", "value"))
    if _NOTHING.fullmatch(value.text) or any(
        _GOES_ON.search(cell.text) and not _NOTHING.fullmatch(cell.text) for cell in cells
    ):
        return _blank(line)
    letters = list(_blank(line))
    before = cells[0]
    letters[before.start : before.end] = line[before.start : before.end]
    for cell in (cell for cell in kept if cell.text):
        letters[before.end if before.end < cell.start else cell.start - 1] = "|"
        letters[cell.start : cell.end] = line[cell.start : cell.end]
        before = cell
    return "".join(letters)


def _blank(line: str) -> str:
    return re.sub(r"[^\n]", " ", line)
