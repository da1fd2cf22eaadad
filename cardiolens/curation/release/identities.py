"""Passages of free text that may identify somebody: names, dates, long numbers, addresses of the net.

The kinds follow what HIPAA's safe harbour lists for text (45 CFR 164.514(b)(2): names, elements of dates but
the year, ages over 89, numbers of every sort, mail and web addresses). Titles, labels and months are English;
numbers are read in any script. Two words with capitals that no shipped protocol has count as a name. A single
name without a title, a degree, an initial or a label beside it is not recognised, nor are most institutions
and streets. So a person reads what is found, and a text without a finding is no proof.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal

from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.study.anatomy import DATA

Kind = Literal["name", "date", "age", "number", "address"]
_Holds = Callable[[re.Match[str]], bool]

_MOST_BYTES = 1 << 20  # of a file of a shipped protocol
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
_INVISIBLE = ("Cf", "Cc")  # joiners, marks of direction, control characters
_REPORT_WORDS = """
prior previous current known query former standard acute chronic technique method comparison compared
indication background impression conclusion findings appearances clinical information studies study
examination summary cmr mri mod lvsd rvsd no good mild severe the nl united imaging siemens philips canon
hitachi fujifilm healthineers heart hospital university centre center
"""  # no names, beside the words of the shipped protocols

_WORD = r"[^\W\d_][\w'’.-]*"
_NAME = rf"(?P<name>{_WORD}(?:\s{_WORD}){{0,2}})"
_LETTERS = r"[^\W\d_](?:['’]?[^\W\d_]){2,}"
_TITLE = (
    r"(?P<title>(?i:drs?|doctor|prof|professor|mrs|miss|mister|madam|nurse|sister|sir|lady)"
    r"|[Mm][rs](?=\.)|M[rs])"
)
_DEGREE = r"(?:MD|M\.D\.|PhD|Ph\.D\.|MBBS|MBChB|FRCR|FRCP|FACC|FESC|FSCMR|RN|BSc|MSc)"
_LABEL = (
    r"(?i:(?:name|patient|pat|reader|radiologist|physician|cardiologist|technologist|operator|referrer)(?:'s)?"
    r"(?:\s(?:name|is))*|signed|reported|dictated|verified|read|approved|reviewed|examined|performed)"
)
_CLOSING = r"(?i:pt|rep|re|d/w|dw|attn|(?:discussed|reviewed)\swith|(?:kind|best|with)\sregards|sincerely)"
_INITIALS = r"(?<![\w.])[^\W\d_]\.[ -]?(?:[^\W\d_]\.[ -]?){0,3}"

_DAY = r"(?<!\d)(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th|\.)?"
_YEAR = r"(?:1[2-9]|2[0-6])\d\d(?!\d)"  # of the calendars in use: 1345 in Iran, 2509 in Thailand
_UNIT = r"(?:mm|cm|m|ml|ms|s|g|kg|bpm|t|years?|months?|weeks?|days?|frames?|slices?)(?![^\W\d_])"
_MONTH = (
    r"(?:(?i:jan(?:uary)?|feb(?:ruary)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)|MAR|MAY|Mar(?:ch)?|May)(?![^\W\d_])\.?"
)
_OTHER_MONTH = r"(?P<month>(?:[^\d;:!?%()\[\]]){1,28}?)"  # of a language whose months are not listed
_SEPARATED = r"(?<![\d.])(\d{1,4})(\s?[./·-]\s?|\s)(\d{1,2})(\s?[./·-]\s?|\s)'?(\d{1,4})(?!\d|[.,]\d)"
_AMOUNT = r"\d{1,3}(?:[.,]\d{1,5})?"
# What has many digits and is nobody's: a broken number, a range or ratio of two, a range of years.
_NO_IDENTITY = re.compile(rf"{_AMOUNT}(?:\s?[-/:]\s?{_AMOUNT})?|(?:19|20)\d\d\s?[-/]\s?(?:19|20)?\d\d")


@dataclass(frozen=True, slots=True)
class Identity:
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
    findings = [
        Identity(kind, match.start(), _end(match))
        for kind, pattern, holds in _rules()
        for match in pattern.finditer(folded)
        if holds is None or holds(match)
    ]
    return list(_apart(sorted(findings, key=lambda one: (one.start, -one.end))))


def _end(match: re.Match[str]) -> int:
    """Where a match ends, with the name that a rule saw behind it."""
    return max(match.end(), match.end("name")) if "name" in match.re.groupindex else match.end()


def _apart(identities: Iterable[Identity]) -> Iterator[Identity]:
    end = -1
    for identity in identities:
        if identity.start >= end:
            end = identity.end
            yield identity


@cache
def _rules() -> tuple[tuple[Kind, re.Pattern[str], _Holds | None], ...]:
    return tuple((kind, re.compile(pattern), holds) for kind, pattern, holds in _patterns())


def _patterns() -> Iterator[tuple[Kind, str, _Holds | None]]:
    yield "name", rf"(?<!\w){_TITLE}(?:\.\s?|\s){_NAME}", _follows_title
    yield "name", rf"(?<!\w)(?:MR|MS)\.\s?{_NAME}", lambda at: _in_capitals(at) and _is_unknown(at)
    yield "name", rf"(?<![\w'’.-]){_NAME},?\s{_DEGREE}(?!\w)", _ends_in_capital
    yield "name", rf"{_INITIALS}(?P<name>[^\W\d_]{{2,}})", _follows_initial
    yield "name", rf"(?<![\w'’-]){_LETTERS}(?=(?P<name>,? {_LETTERS})(?![\w'’]))", _are_capital
    yield "name", r"(?<=[\s.])/\s?(?P<name>[^\W\d_]['’]?[^\W\d_]+)", _is_signature  # as dictations are signed
    yield "name", rf"(?<!\w){_CLOSING}[:,]?\s{_NAME}", _is_signature
    yield "name", rf"(?<!\w){_LABEL}(?P<by>(?:\sby(?:\s?:)?\s|\s?[:=]\s?)|\s){_NAME}", _follows_label
    yield "name", r"(?<!\w)[^\W\d_]{2,}\^[^\W\d_]+", None  # as DICOM writes them
    yield "date", _SEPARATED, _is_date
    yield "date", rf"{_DAY}\s?[./-]?\s?(?:(?:of|day)\s)*{_MONTH}(?:\s?[./,-]?\s?'?\d{{2,4}}(?!\d))?", None
    yield (
        "date",
        rf"(?<![^\W\d_]){_MONTH}\s?[./,-]?\s?(?:{_DAY}(?!\d)(?:,?\s{_YEAR})?|{_YEAR}|'\d\d(?!\d))",
        None,
    )
    yield "date", rf"{_DAY}(?!\s?{_UNIT}){_OTHER_MONTH}(?<!\d){_YEAR}", _is_month
    yield "date", rf"(?<!\d){_YEAR}{_OTHER_MONTH}{_DAY}(?!\d|\s?{_UNIT}|\s?%)", _is_month
    yield "date", r"(?<![\d./])(?:0?[1-9]|1[0-2])\s?[./-]\s?(?:19|20)\d\d(?!\d)", None
    yield "date", r"(?<!\d)(?:19|20)\d\d[./-](?:0[1-9]|1[0-2])(?!\d)", None
    yield "date", r"(?<![\d.])(?:0?[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.(?!\d)", None
    yield "date", r"(?<!\d)(?:19|20)\d\d-?(?:W\d\d(?:-?\d)?|\d{3})(?!\d)", None  # ISO 8601: week, day of year
    yield "date", r"(?<!\w)(?i:born|birth|dob|yob)(?!\w)\W{0,3}(?:[^\W\d_]+\W{1,3}){0,2}\d{2,4}", None
    yield "age", r"(?<!\d)(?:9\d|1[01]\d)[\s-]?(?i:y/o|yo|yrs?|years?)(?![^\W\d_])", None
    yield "age", r"(?<!\w)(?i:aged?)\W{1,3}(?:9\d|1[01]\d)(?!\d|[.,%])", None
    yield "address", r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+", None
    yield "address", r"(?i:https?://|ftp://|www\.)[^\s<>\"]+", None
    yield "address", r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:{1,2}){3,7}[0-9a-fA-F]{1,4}(?![\w:])", None
    yield "number", r"\w+", _is_code
    yield "number", r"(?<![\w.])\+?\(?\d+(?:\)?\s?[ ./:()_-]\s?\(?\d+){1,15}", _is_long


@cache
def _vocabulary() -> frozenset[str]:
    """The words of the shipped protocols and of reports, in small letters; none is taken for a name."""
    texts = [_REPORT_WORDS, *(read_text(path, _MOST_BYTES) for path in sorted(DATA.rglob("*.yaml")))]
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


def _in_capitals(match: re.Match[str]) -> bool:
    """MR stands for magnetic resonance, and for somebody before a word in capitals."""
    first = match["name"].split(maxsplit=1)[0]
    return len(first) > 2 and first.isupper()


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
    return sum(map(str.isdigit, match[0])) >= 6 and not _NO_IDENTITY.fullmatch(match[0].strip("(+"))
