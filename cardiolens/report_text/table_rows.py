"""Rows of tables: a name, a value, perhaps its unit, and what is normal, which is no finding."""

import re

from cardiolens.report_text.remarked_rows import RemarkedHead, kind_of, remarked_head, remarked_row

_CELL = re.compile(r"[ \t]*\|[ \t]*|\t+| {3,}")
_NUMBER = re.compile(r"(?P<number>\d{1,4}(?:[.,]\d+)?)\s*(?P<unit>%|m[lL]\s*/\s*m(?:2|²|\^2)|mm|cm|ml|mL)?")
_LEAST_COLUMNS = 2
_UNIT = re.compile(r"%|m[lL]\s*/\s*m(?:2|²|\^2)|mm|cm|ml|mL")
_NAMED_UNIT = re.compile(r"\s*(?:\((?P<bracketed>[^()]*)\)|(?P<percent>%))\s*$")
_NORMAL = re.compile(
    r"\(?\s*(?:(?:reference|ref|normal|norm|nl|range)\b[.:]?\s*)*[<>≤≥]?\s*\d[\d.,]*(?:\s*(?:-|–|to)\s*\d[\d.,]*)?\s*"
    r"(?:%|m[lL]/m2|mm|cm|ml|mL)?\s*\)?",
    re.IGNORECASE,
)
_FLAG = re.compile(r"[HLhl*]|high|low|[↑↓]")
_BRACKETED = re.compile(
    r"\(\s*(?:[<>≤≥]?\s*\d[\d.,]*\s*(?:-|–|to)\s*\d[\d.,]*|"
    r"(?:reference|ref|normal|norm|nl|range|n)\b[^()\n]*\d[^()\n]*|[<>≤≥]\s*\d[\d.,]*)\s*(?:%|m[lL]/m2|mm|cm|ml|mL)?\s*\)",
    re.IGNORECASE,
)
_GRADED_NUMBER = re.compile(
    r"\d{1,3}(?:[.,]\d+)?\s*(?:%|m[lL]/m2)[,;]? \(?[a-z][a-z -]+\)?"
)  # `60 %, normal`
_MEASURED = re.compile(r"\d\s*(?:%|m[lL]\s*/\s*m(?:2|²|\^2)|mm|cm|ml|mL|g|g/m2)?\s*$")


_TIME = re.compile(
    r"(?:\w+ )?(?:19|20)\d\d|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}"
    r"|(?:prior|previous|last|old|before|baseline|initial)(?: \w+)?"
    r"|(?:follow[- ]?up|today|current|now|present|this)(?: \w+)?|\d{1,2}/\d{2,4}",
    re.IGNORECASE,
)


def _has_times(cells: list[str]) -> bool:
    """Return whether a row is the head of a table with a column for each of several examinations."""
    n_times = sum(_TIME.fullmatch(cell) is not None for cell in cells[1:])
    return n_times > 1 or any(kind_of(cell) == "earlier" for cell in cells[1:])


def of_rows(text: str) -> str:
    """Put the rows of tables into words, and leave out what is normal; the text keeps its length."""
    lines: list[str] = []
    head: RemarkedHead | None = None
    is_of_times = False
    for line in text.splitlines(keepends=True):
        row = line.rstrip("\n")
        cells = [cell.strip().lower() for cell in _CELL.split(line.strip().strip("|"))]
        if opened := remarked_head(row):
            head = opened
        elif not line.strip():
            head, is_of_times = None, False
        is_of_times = _has_times(cells) or (is_of_times and len(cells) > 1)
        if is_of_times and len(cells) > _LEAST_COLUMNS:
            lines.append(re.sub(r"[^\n]", " ", line))  # it is unknown which column is of today
            continue
        read = remarked_row(row, head) if head and not opened else None
        lines.append(_words(line) if read is None else read + line[len(row) :])
    return "".join(lines)


def _words(line: str) -> str:
    row = line.rstrip("\n")
    cells = [cell.strip() for cell in _CELL.split(row.strip("| \t"))]
    is_prose = ":" in cells[0] or any(cell.endswith((".", ",", ";", ":", "?")) for cell in cells)
    if len(cells) < 2 or is_prose or (not any(mark in row for mark in "\t|") and len(cells) < 3):
        return _without_normal(line)
    name, *rest = cells
    cells_read = _value(name, rest)
    if cells_read is None:
        return " " * len(row) + line[len(row) :]
    label, value = cells_read
    start = row.index(name)
    place = min(row.index(rest[0], start + len(name)), len(row) - len(value))  # a value stands where it stood
    if place <= start + len(label):
        return " " * len(row) + line[len(row) :]
    padded = f"{' ' * start}{label}:".ljust(place) + value
    return padded.ljust(len(row)) + line[len(row) :]


def _value(name: str, cells: list[str]) -> tuple[str, str] | None:
    """Return the name and the value of a row; None if it is unknown which cell is the value."""
    if unit_of_name := _NAMED_UNIT.search(name):
        name = name[: unit_of_name.start()]
    unit = (unit_of_name["bracketed"] or unit_of_name["percent"]) if unit_of_name else None
    value, *rest = cells
    rest = [cell for cell in rest if cell not in ("-", "–")]
    number = _NUMBER.fullmatch(value)
    if number is None:
        is_words = re.match(r"[A-Za-z]{2}", value) or _GRADED_NUMBER.fullmatch(value)
        return (name, value) if is_words and not rest and not unit_of_name else None
    unit = number["unit"] or unit
    if rest and _UNIT.fullmatch(rest[0]):
        if unit is not None:
            return None
        unit, rest = rest[0], rest[1:]
    if unit is None or any(not (_NORMAL.fullmatch(cell) or _FLAG.fullmatch(cell)) for cell in rest if cell):
        return None
    return name, f"{number['number']} {unit}"


def _without_normal(line: str) -> str:
    """Blank out brackets that say what is normal of the number before them: `36 % (normal 57-77)`."""

    def blank(match: re.Match[str]) -> str:
        return " " * len(match[0]) if _MEASURED.search(line, 0, match.start()) else match[0]

    return _BRACKETED.sub(blank, line)
