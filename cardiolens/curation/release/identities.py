"""Passages of free text that may identify somebody: names near titles, dates, long numbers, addresses.

The kinds follow what HIPAA's safe harbour lists for text (45 CFR 164.514(b)(2): names, elements of dates but
the year, ages over 89, numbers of every sort, mail and web addresses). The rules know shapes, and of words
only those beside a name or a date (`identity_words.yaml`). A name without a title, a degree, an initial or a
label beside it is not recognised, nor is a place. So a person reads what is found, and a text without a
finding is no proof.
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from cardiolens.base.untrusted.yaml_file import read_yaml

Kind = Literal["name", "date", "age", "number", "address"]
_MOST_BYTES = 1 << 20  # of the words
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u00ad"), "-")
_WORD = r"[^\W\d_][\w'’.-]*"
_MOST_GROUPS = 15  # of digits in one number; more are several
_ORDINAL = r"(?:st|nd|rd|th|er|re|ª|º|\.)?"
_OF = r"(?:(?:of|de|del|di|den|day|d')\s)*"
_YEAR = r"(?:1[2-9]|2[0-6])\d\d"  # of the calendars in use: 1345 in Iran, 2509 in Thailand
_AMOUNT = r"\d{1,3}(?:[.,]\d{1,5})?"
_NO_IDENTITY = re.compile(rf"{_AMOUNT}(?:\s?[-/:]\s?{_AMOUNT})?|(?:19|20)\d\d\s?[-/]\s?(?:19|20)?\d\d")


@dataclass(frozen=True, slots=True)
class Identity:
    """A passage of a folded text, and what it may be."""

    kind: Kind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: Kind
    pattern: re.Pattern[str]
    holds: Callable[[re.Match[str]], bool] = bool


def fold(text: str) -> str:
    """Return a text with one form of digits, letters and dashes, and without invisible characters."""
    text = unicodedata.normalize("NFKC", text).translate(_DASHES)
    return "".join(
        str(unicodedata.digit(char, char)) if char.isdigit() else " " if char.isspace() else char
        for char in text
        if char.isspace() or unicodedata.category(char) not in ("Cf", "Cc")
    )


def identities(folded: str) -> list[Identity]:
    """Return the passages of a folded text that may identify somebody, in order; none overlaps another."""
    found = [
        Identity(rule.kind, match.start(), match.end())
        for rule in _rules()
        for match in rule.pattern.finditer(folded)
        if rule.holds(match)
    ]
    return list(_apart(sorted(found, key=lambda one: (one.start, -one.end))))


def _apart(found: Iterable[Identity]) -> Iterator[Identity]:
    end = -1
    for one in found:
        if one.start >= end:
            end = one.end
            yield one


@cache
def _rules() -> tuple[_Rule, ...]:
    words = read_yaml(Path(__file__).with_name("identity_words.yaml"), _MOST_BYTES)
    return (*_names(words), *_dates(words), *_numbers())


def _names(words: dict[str, str]) -> Iterator[_Rule]:
    title = rf"(?:(?i:{_any(words['titles'])})|{_any(words['titles_as_written'])})"
    joined = _any(words["titles_joined"])
    name = rf"(?P<name>{_WORD}(?:\s{_WORD}){{0,2}})"
    yield _Rule("name", re.compile(rf"(?<![\w])(?P<title>{title})(?:\.\s?|\s){name}"), _follows_title)
    yield _Rule("name", re.compile(rf"(?<!\w)(?i:{joined})\s?{name}"))
    yield _Rule("name", re.compile(rf"(?<!\w)(?P<title>MR|MS)\.\s?{name}"), lambda at: _shouted(at["name"]))
    yield _Rule(
        "name", re.compile(rf"[\u3040-\u30ff\u4e00-\u9fff]{{1,4}}\s?{_any(words['titles_behind_han'])}")
    )
    yield _Rule("name", re.compile(rf"[\uac00-\ud7a3]{{2,4}}\s?{_any(words['titles_behind_hangul'])}(?!\w)"))
    with_degree = rf"(?<![\w'’.-]){name},?\s{_any(words['degrees'])}(?!\w)"
    yield _Rule("name", re.compile(with_degree), lambda at: _capital(at["name"].split()[-1]))
    initials = r"(?<![\w.])[^\W\d_]\.[ -]?(?:[^\W\d_]\.[ -]?){0,3}"
    yield _Rule("name", re.compile(rf"{initials}(?P<name>[^\W\d_]{{2,}})"), _is_initial)
    by = rf"(?:\s(?:{_any(words['links_by'])})\s|\s?[:=]\s?)"
    label = rf"(?i:{_any(words['labels'])})(?:'s)?(?i:\s(?:name|is|est|ist|es|è))*"
    yield _Rule("name", re.compile(rf"(?<!\w){label}(?:{by}|\s){name}"), _follows_label)
    signed = rf"(?i:{_any(words['labels_by'])})"
    yield _Rule("name", re.compile(rf"(?<!\w){signed}(?:{by}|\s){name}"), _follows_label)
    yield _Rule("name", re.compile(rf"{_any(words['labels_han'])}\s?[::]\s?\w+"))
    yield _Rule("name", re.compile(r"(?<!\w)[^\W\d_]{2,}\^[^\W\d_]+"))  # as DICOM writes them


def _dates(words: dict[str, str]) -> Iterator[_Rule]:
    separated = r"(?<![\d.])(\d{1,4})(\s?[./·年-]\s?|\s)(\d{1,2})(\s?[./·月-]\s?|\s)'?(\d{1,4})(?!\d|[.,]\d)"
    yield _Rule("date", re.compile(separated), _is_date)
    month = rf"(?:(?i:{_any(words['months'])})|{_any(words['months_as_written'])})(?![^\W\d_])\.?"
    day = rf"(?<!\d)(?:0?[1-9]|[12]\d|3[01]){_ORDINAL}"
    yield _Rule("date", re.compile(rf"{day}\s?[./-]?\s?{_OF}{month}(?:\s?[./-]?\s?{_OF}'?\d{{2,4}}(?!\d))?"))
    behind = rf"(?<![^\W\d_]){month}\s?[./,-]?\s?(?:{day}(?!\d)(?:,?\s{_YEAR})?|{_OF}(?:{_YEAR}|'\d\d)(?!\d))"
    yield _Rule("date", re.compile(behind))
    yield _Rule(
        "date",
        re.compile(rf"{day}\s?[./-]?\s?{_OF}[^\W\d_][^\d\s]{{2,14}}[,.]?\s?[./-]?\s?{_OF}{_YEAR}(?!\d)"),
    )
    yield _Rule("date", re.compile(rf"(?<!\w)[^\W\d_]{{3,14}}\.?\s{day}(?!\d),?\s{_YEAR}(?!\d)"))
    yield _Rule(
        "date", re.compile(r"\d{1,4}\s?[年년]\s?\d{1,2}\s?[月월]|\d{1,2}\s?[月월]\s?\d{1,2}\s?[日号號일]")
    )
    yield _Rule("date", re.compile(rf"{day}\s?[./-]?\s?[IVX]{{1,4}}\s?[./-]?\s?(?:{_YEAR}|\d\d)(?!\d)"))
    yield _Rule("date", re.compile(r"(?<![\d./])(?:0?[1-9]|1[0-2])\s?[./-]\s?(?:19|20)\d\d(?!\d)"))
    yield _Rule("date", re.compile(r"(?<!\d)(?:19|20)\d\d[./-](?:0[1-9]|1[0-2])(?!\d)"))
    yield _Rule("date", re.compile(r"(?<![\d.])(?:0?[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.(?!\d)"))
    yield _Rule("date", re.compile(r"(?<!\d)(?:19|20)\d\d-?(?:W\d\d(?:-?\d)?|\d{3})(?!\d)"))
    born = rf"(?<!\w)(?i:{_any(words['births'])})(?!\w)[^\w]{{0,3}}(?:[^\W\d_]+\W{{1,3}}){{0,2}}\d{{2,4}}"
    yield _Rule("date", re.compile(born))
    of_age = rf"(?<!\d)(?:9\d|1[01]\d)[\s-]?(?i:{_any(words['years_of_age'])})(?![^\W\d_])"
    yield _Rule("age", re.compile(of_age))
    yield _Rule("age", re.compile(rf"(?<!\w)(?i:{_any(words['ages'])})\W{{1,3}}(?:9\d|1[01]\d)(?!\d|[.,%])"))


def _numbers() -> Iterator[_Rule]:
    yield _Rule("address", re.compile(r"(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+"))
    yield _Rule("address", re.compile(r"(?i:https?://|ftp://|www\.)[^\s<>\"]+"))
    yield _Rule("address", re.compile(r"(?<![\w:])(?:[0-9a-fA-F]{1,4}:{1,2}){3,7}[0-9a-fA-F]{1,4}(?![\w:])"))
    yield _Rule("number", re.compile(r"\w+"), lambda at: _is_code(at[0]))
    yield _Rule(
        "number",
        re.compile(rf"(?<![\w.])\+?\(?\d+(?:\)?\s?[ ./:()_-]\s?\(?\d+){{1,{_MOST_GROUPS}}}"),
        _is_long,
    )


def _any(words: str) -> str:
    """A choice of words, the longest first; `_` stands for a blank."""
    chosen = sorted(words.split(), key=len, reverse=True)
    return "(?:" + "|".join(re.escape(word).replace("_", r"\s") for word in chosen) + ")"


def _capital(word: str) -> bool:
    """Whether a word begins as names do: with a capital, or in a script that has none."""
    return word[:1].isupper() or word[:1].lower() == word[:1].upper()


def _follows_title(match: re.Match[str]) -> bool:
    """In lower case texts names are, too."""
    names = match["name"].split()
    return any(map(_capital, names[:3])) if _capital(match["title"]) else len(names[0].strip(".")) > 1


def _follows_label(match: re.Match[str]) -> bool:
    """Behind a colon or `by` one capital is enough, behind a blank two words must have one."""
    given = match["name"].split()
    clear = (
        not match[0][: match.start("name") - match.start()]
        .rstrip()
        .endswith(tuple("abcdefghijklmnopqrstuvwxyz"))
    )
    return _capital(given[0]) and (clear or (len(given) > 1 and _capital(given[1])))


def _is_initial(match: re.Match[str]) -> bool:
    return match[0][0].isupper() and match["name"][0].isupper() and match["name"][-1].islower()


def _shouted(name: str) -> bool:
    first = name.split(maxsplit=1)[0]
    return len(first) > 2 and first.isupper()


def _is_date(match: re.Match[str]) -> bool:
    """Whether three numbers between like separators are day, month and year in some order."""
    first, second, third = match[1], match[3], match[5]
    if match[2].strip() != match[4].strip() and match[2].strip() != "年":
        return False
    if not match[2].strip() and len(first + second + third) < 8:  # blanks alone separate measurements as well
        return False
    if len(third) in (2, 4) and len(first) <= 2:
        return _is_day(first, second)
    return len(first) in (2, 4) and len(third) <= 2 and _is_day(second, third)


def _is_day(one: str, other: str) -> bool:
    low, high = sorted((int(one), int(other)))
    return 1 <= low <= 12 and high <= 31


def _is_code(word: str) -> bool:
    """Whether a word has six and more digits, or four among letters: a number of somebody, a pseudonym."""
    n_digits = sum(map(str.isdigit, word))
    return n_digits >= 6 or (n_digits >= 4 and len(word) >= 8 and len(re.findall(r"\D\d", word)) >= 3)


def _is_long(match: re.Match[str]) -> bool:
    """Whether six and more digits stand together, and are no amount, range, ratio or years."""
    return sum(map(str.isdigit, match[0])) >= 6 and not _NO_IDENTITY.fullmatch(match[0])
