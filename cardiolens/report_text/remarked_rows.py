"""Rows with remarks: of a table with a column of remarks in its head, each row's value and remark."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_THING = r"(?:exam(?:ination)?|study|scan|mri|cmr|values?|results?|findings?|report|visit)"
_SCAN = r"(?:exam(?:ination)?|study|scan|mri|cmr)"
_YEAR = r"(?:19|20)\d\d"
_EARLIER = (
    rf"(?:prior|previous(?:ly)?|last|old|before|baseline|initial|earlier|past)"
    rf"(?: (?:{_THING}|echo|tte|ct|time))?",
    rf"(?:prior|previous|last)? ?(?:[a-z]{{3,9}}\.? )?{_YEAR}",
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{1,2}/\d{2,4}",
    r"(?:\w+ )?(?:days?|weeks?|months?|years?) ago|last (?:week|month|year)",
    r"pre-?op\w*|\w+ before|before \w+",
    rf"{_SCAN} (?:of )?{_YEAR}",
)
# A name of two kinds, or of none, leaves the whole table open.
_COLUMNS = {
    "today": rf"(?:today|now|current(?:ly)?|this time|today'?s)(?: {_THING})?"
    rf"|(?:this|present|actual|new) {_THING}|{_THING} (?:today|now)",
    "earlier": "|".join(_EARLIER),
    "value": r"values?|results?|findings?|measure(?:d|ment)?",
    "unit": r"units?",
    "normal": r"(?:ref(?:erence)?\.?|normal|norm)(?: ?(?:range|values?|limits?))?\.?|range|n",
    "flag": r"flags?",
    "change": r"(?:change|delta|difference|trend|Δ)(?: ?%)?",
    "remark": r"comments?|remarks?|notes?|assessment|interpretation",
}
_OF_KIND = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _COLUMNS.items()}
_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_NAME = re.compile(
    r"(?:parameter|structure|item|feature|quantity|measure|measurement|variable|test|sequence|chamber|finding)s?|",
    re.IGNORECASE,
)


def kind_of(name: str) -> str:
    """The one kind of a column that its name states; "?" where it states none, or two."""
    text = name if _OF_KIND["earlier"].fullmatch(name) else _BRACKET.sub("", name)
    kinds = [kind for kind, pattern in _OF_KIND.items() if pattern.fullmatch(text)]
    return kinds[0] if len(kinds) == 1 else "?"


def names_rows(name: str) -> bool:
    """Return whether the name of a first column says that rows are named there, or it has no name."""
    return _NAME.fullmatch(name) is not None


_KEPT = frozenset({"value", "unit", "remark"})
_KINDS = _KEPT | {"normal", "flag"}
_NOTHING = re.compile(r"[\s–—-]*|n/?a", re.IGNORECASE)
_NOT_MADE = re.compile(r"not (?:done|performed|acquired|assessed|given)", re.IGNORECASE)
# A number that no option has; its remark says it in words.
_OTHER_MEASURE = re.compile(
    r"[<>≤≥]?\s*\d[\d.,]*(?:\s*[/–-]\s*\d[\d.,]*)?\s*(?:cm2|cm²|ms)|RF\s*\d+\s*%|\d[\d.,]*\s*/\s*\d[\d.,]*\s*mm"
)
_POSITIVE = re.compile(r"\+(?:ve)?|pos(?:itive)?\.?", re.IGNORECASE)
_SIGNED = re.compile(
    r"\W*(?:lge|rwma|late enhancement|late gadolinium(?: enhancement)?|scar)\W*", re.IGNORECASE
)
_NORMAL = re.compile(r"(?<![^\s,;])N(?![^\s,;.])")
_OF_SIGNAL = re.compile(r"lge|late|enhanc|scar|perf|oedema|edema|effusion|thromb|clot|sam\b", re.IGNORECASE)
_PAIR = re.compile(r"LA(?P<gap> ?)/(?P<second> ?RA\b)")
_TWICE = re.compile(r"(?P<one>[A-Za-z]+)\s*/\s*(?P=one)", re.IGNORECASE)
_NAMES_ONE = re.compile(r"\b(?:LA|RA)\b")
_NUMBER = re.compile(r"\d[\d.,]*\s*(?:%|ml/m2|ml/m²|mm)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RemarkedHead:
    """The head of a table: the kind of each column behind the name of the row."""

    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Cell:
    text: str
    start: int


def remarked_head(row: str) -> RemarkedHead | None:
    """The head of a table with values and remarks; None for any other line."""
    if "|" not in row:
        return None
    name, *columns = [cell.text for cell in _cells(row)]
    kinds = tuple(map(kind_of, columns))
    is_head = names_rows(name) and _KINDS.issuperset(kinds)
    is_told = kinds.count("value") == 1 and kinds.count("remark") == 1 and kinds.index("remark") > 0
    return RemarkedHead(kinds) if is_head and is_told else None


def remarked_row(row: str, head: RemarkedHead) -> str | None:
    """A row as a sentence: its name, its value and its remark; None where it is no row of this table.

    Blank where it is unknown what its cells are about.
    """
    if "|" not in row:
        return None
    name, *cells = _cells(row)
    if not name.text or len(cells) != len(head.kinds):
        return None
    value_cells = [
        cell
        for cell, kind in zip(cells, head.kinds, strict=True)
        if kind in _KEPT and not _NOTHING.fullmatch(cell.text)
    ]
    has_remark = head.kinds[-1] != "remark" or not _NOTHING.fullmatch(cells[-1].text)
    value_cells = [cell for cell in value_cells if not (has_remark and _OTHER_MEASURE.fullmatch(cell.text))]
    if not value_cells or (len(value_cells) > 1 and any(_NOT_MADE.search(cell.text) for cell in value_cells)):
        return " " * len(row)
    return _written(row, name, value_cells)


def _cells(row: str) -> list[_Cell]:
    """Return the cells of a row; a bar before the first one, or behind all of a row that has one, is none."""
    is_led = row.lstrip().startswith("|")
    cells, place = [], 0
    for part in row.split("|"):
        cells.append(_Cell(part.strip(), place + len(part) - len(part.lstrip())))
        place += len(part) + 1
    cells = cells[1:] if is_led else cells
    return cells[:-1] if is_led and cells[1:] and not cells[-1].text else cells


def _written(row: str, name: _Cell, cells: list[_Cell]) -> str:
    letters = [" "] * len(row)
    label = name.text
    if pair := _PAIR.fullmatch(label):
        label = f"LA{pair['gap']}&{pair['second']}"
    names_one = pair is not None and any(_NAMES_ONE.search(cell.text) for cell in cells)
    end = name.start
    if not names_one:
        _put(letters, name.start, label)
        end += len(label)
        letters[end] = ":"
    before = ""
    for start, text in _values(label, cells):
        if before and not _NUMBER.fullmatch(before):  # `142 ml/m2 severely dilated` is one statement
            letters[end] = ","
        _put(letters, start, text)
        end, before = start + len(text), text
    return "".join(letters)


def _values(name: str, cells: list[_Cell]) -> Iterator[tuple[int, str]]:
    for cell in cells:
        text = cell.text.rstrip(".")
        if text.count(":") == 1 and ";" not in text:
            text = text.replace(":", " ")  # `hypokinesia: mid lateral wall` is of the row's name
        if _POSITIVE.fullmatch(text) and _SIGNED.fullmatch(name):
            text = "ʏ"  # yes: a letter that is no word, and has an alias
        if "&" in name and (twice := _TWICE.fullmatch(text)):
            text = twice["one"]
        yield cell.start, text if _OF_SIGNAL.search(name) else _NORMAL.sub("ɴ", text)


def _put(letters: list[str], start: int, text: str) -> None:
    letters[start : start + len(text)] = text
