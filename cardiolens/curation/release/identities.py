"""Passages of free text that may identify somebody: names, dates, long numbers, addresses of the net.

The kinds follow what HIPAA's safe harbour lists for text (45 CFR 164.514(b)(2): names, elements of dates but
the year, ages over 89, numbers of every sort, mail and web addresses). Titles, labels and months are English;
numbers are read in any script. Two words with capitals that no shipped protocol has count as a name. A single
name without a title, a degree, an initial or a label beside it is not recognised, nor are most institutions
and streets. So a person reads what is found, and a text without a finding is no proof.
"""

import re
import unicodedata
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml

from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.study.anatomy import DATA

Kind = Literal["name", "date", "age", "number", "address"]
_Holds = Callable[[re.Match[str]], bool]

_MOST_BYTES = 1 << 20  # of a file of a shipped protocol
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
_INVISIBLE = ("Cf", "Cc")  # joiners, marks of direction, control characters


class Identity(NamedTuple):
    """A passage of a folded text, and what it may be."""

    kind: Kind
    start: int
    end: int


def fold(text: str) -> str:
    """Return a text with one form of digits, letters, blanks and dashes, and without invisible characters."""
    text = unicodedata.normalize("NFKC", text).translate(_DASHES)
    return "".join(
        str(unicodedata.digit(char, char))
        if char.isdigit()
        else " "
        if char.isspace() and char != "\n"
        else char
        for char in text
        if char.isspace() or unicodedata.category(char) not in _INVISIBLE
    )


def identities(folded: str) -> list[Identity]:
    """Return the passages of a folded text that may identify somebody, in order; none overlaps another."""
    passages = [
        Identity(kind, match.start(), _end(match))
        for kind, pattern, holds in _rules()
        for match in pattern.finditer(folded)
        if holds is None or holds(match)
    ]
    apart: list[Identity] = []
    for identity in sorted(passages, key=lambda one: (one.start, -one.end)):
        if not apart or identity.start >= apart[-1].end:
            apart.append(identity)
    return apart


def _end(match: re.Match[str]) -> int:
    """Where a match ends, with the name that a rule saw behind it."""
    return max(match.end(), match.end("name")) if "name" in match.re.groupindex else match.end()


@cache
def _tables() -> dict[str, Any]:
    """Return the patterns of identities.yaml, and the words that are no names."""
    tables: dict[str, Any] = yaml.safe_load(read_text(Path(__file__).with_suffix(".yaml"), _MOST_BYTES))
    return tables


@cache
def _pattern(text: str) -> re.Pattern[str]:
    """Compile a pattern in which each `<NAME>` stands for a fragment."""
    fragments = _tables()["fragments"]
    while (whole := re.sub(r"<([A-Z_]+)>", lambda name: str(fragments[name[1]]), text)) != text:
        text = whole
    return re.compile(text)


@cache
def _rules() -> tuple[tuple[Kind, re.Pattern[str], _Holds | None], ...]:
    rows = _tables()["patterns"]
    return tuple(
        (row["kind"], _pattern(row["pattern"]), _HOLDS[row["holds"]] if "holds" in row else None)
        for row in rows
    )


@cache
def _vocabulary() -> frozenset[str]:
    """The words of the shipped protocols and of reports, in small letters; none is taken for a name."""
    texts = [_tables()["words"], *(read_text(path, _MOST_BYTES) for path in sorted(DATA.rglob("*.yaml")))]
    return frozenset(word.casefold() for text in texts for word in re.findall(r"[^\W\d_]+", fold(text)))


def _is_unknown(match: re.Match[str]) -> bool:
    """Whether the first word of a name is no word of the vocabulary."""
    return re.findall(r"[^\W\d_]+", match["name"])[0].casefold() not in _vocabulary()


def _capital(word: str) -> bool:
    """Whether a word begins as names do: with a capital, or in a script that has none."""
    return word[:1].isupper() or word[:1].lower() == word[:1].upper()


def _follows_title(match: re.Match[str]) -> bool:
    """A capital within three words, for `van der`; in texts of small letters names are small, too."""
    names = match["name"].split()
    return any(map(_capital, names)) if _capital(match["title"]) else len(names[0].strip(".")) > 1


def _follows_label(match: re.Match[str]) -> bool:
    """One capital behind a colon, `by` or `is`; two behind a blank alone."""
    names = match["name"].split()
    is_told = bool(match["by"].strip()) or match[0][: match.start("by") - match.start()].endswith(" is")
    return _capital(names[0]) and (is_told or (len(names) > 1 and _capital(names[1])))


def _follows_initial(match: re.Match[str]) -> bool:
    name = match["name"]
    return match[0][0].isupper() and name[0].isupper() and name[-1].islower() and _is_unknown(match)


def _are_capital(match: re.Match[str]) -> bool:
    """Whether both of two unknown words have a capital, and at least one is no abbreviation."""
    words = match[0], match["name"].lstrip(", ")
    is_capital = all(word[0].isupper() for word in words) and any(word[1:].islower() for word in words)
    return is_capital and _is_unknown(match) and match[0].casefold() not in _vocabulary()


def _is_signature(match: re.Match[str]) -> bool:
    return _capital(match["name"]) and _is_unknown(match)


def _ends_in_capital(match: re.Match[str]) -> bool:
    return _capital(match["name"].rsplit(maxsplit=1)[-1])


def _follows_short_title(match: re.Match[str]) -> bool:
    """MR stands for magnetic resonance, and for somebody before an unknown word in capitals."""
    first = match["name"].split(maxsplit=1)[0]
    return len(first) > 2 and first.isupper() and _is_unknown(match)


def _is_date(match: re.Match[str]) -> bool:
    """Whether three numbers between like separators are day, month and year in some order."""
    first, second, third = match[1], match[3], match[5]
    if match[2].strip() != match[4].strip():
        return False
    if not match[2].strip() and len(first + second + third) < 8:  # blanks alone separate measurements as well
        return False
    if len(third) in (2, 4) and len(first) <= 2:
        return _is_day(first, second) or (len(first) == 2 and _is_day(second, third[-2:]))
    return len(first) in (2, 4) and len(third) <= 2 and _is_day(second, third)


def _is_day(first: str, second: str) -> bool:
    """Whether two numbers are a day and a month."""
    low, high = sorted((int(first), int(second)))
    return 1 <= low <= 12 and high <= 31


def _is_month(match: re.Match[str]) -> bool:
    """Whether a month may stand between a day and a year: letters of at most four words."""
    return any(map(str.isalpha, match["month"])) and len(match["month"].split()) <= 4


def _is_code(match: re.Match[str]) -> bool:
    """Whether a word has six and more digits, or four among letters: a number of somebody, a pseudonym."""
    word = match[0]
    n_digits = sum(map(str.isdigit, word))
    return n_digits >= 6 or (n_digits >= 4 and len(word) >= 8 and len(re.findall(r"\D\d", word)) >= 3)


def _is_long(match: re.Match[str]) -> bool:
    """Whether six and more digits stand together, and are no amount, range, ratio or years."""
    is_nobodys = _pattern(_tables()["nobodys"]).fullmatch(match[0].strip("(+"))
    return sum(map(str.isdigit, match[0])) >= 6 and not is_nobodys


_CONDITIONS = (
    *(_follows_title, _follows_short_title, _follows_label, _follows_initial, _are_capital, _is_signature),
    *(_ends_in_capital, _is_date, _is_month, _is_code, _is_long),
)
_HOLDS: dict[str, _Holds] = {condition.__name__[1:]: condition for condition in _CONDITIONS}
