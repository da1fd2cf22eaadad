"""Passages of free text that may identify somebody: names, dates, long numbers, addresses of the net.

The kinds follow what HIPAA's safe harbour lists for text (45 CFR 164.514(b)(2): names, elements of dates but
the year, ages over 89, numbers of every sort, mail and web addresses). The rules know shapes, and of words
only those beside a name or a date (`identity_words.yaml`). Two words with capitals that no shipped protocol
has count as a name. A single name without a title, a degree, an initial or a label beside it is not
recognised, nor are most institutions and streets. So a person reads what is found, and a text without a
finding is no proof.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cardiolens.base.untrusted.bounded_files import read_text
from cardiolens.base.untrusted.yaml_file import read_yaml
from cardiolens.curation.release.date_rules import date_rules
from cardiolens.curation.release.identity_rule import Kind, Rule
from cardiolens.curation.release.name_rules import name_rules
from cardiolens.curation.release.number_rules import number_rules
from cardiolens.study.protocol_folder import DATA

_MOST_BYTES = 1 << 20  # of the words
_DASHES = dict.fromkeys(map(ord, "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"), "-")
_INVISIBLE = ("Cf", "Cc")  # joiners, marks of direction, control characters


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
        Identity(rule.kind, match.start(), _end(match))
        for rule in _rules()
        for match in rule.pattern.finditer(folded)
        if rule.holds(match)
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
def _rules() -> tuple[Rule, ...]:
    words = read_yaml(Path(__file__).with_name("identity_words.yaml"), _MOST_BYTES)
    return (*name_rules(words, _vocabulary(words["of_reports"])), *date_rules(words), *number_rules())


def _vocabulary(more: str) -> frozenset[str]:
    """The words of the shipped protocols and more, in small letters; none is taken for a name."""
    texts = [more, *(read_text(path, _MOST_BYTES) for path in sorted(DATA.rglob("*.yaml")))]
    return frozenset(word.casefold() for text in texts for word in re.findall(r"[^\W\d_]+", fold(text)))
