"""Lists of option letters as people and models write them."""

import functools
import re
from dataclasses import dataclass

from cardiolens.judging.reply import words

_OPENING = r"[\s(\[{<\"'“‘]*"
_CLOSING = r"[)\]}>\"'”’.:]*"
_ALONE = r"(?=\W|$|[^\x00-\x7f])(?!['’][A-Za-z])"  # not the first letter of a word, nor of "I'm"
_JOINED = re.compile(rf"{_OPENING}([A-Z]{{2,}}){_CLOSING}\s*$")


@dataclass(frozen=True, slots=True)
class Run:
    """Letters at the start of a text, upper case, and whatever follows them."""

    letters: tuple[str, ...]
    rest: str

    @property
    def alone(self) -> bool:
        """Nothing but punctuation follows."""
        return re.search(r"\w", self.rest) is None


@functools.cache
def _prefix() -> re.Pattern[str]:
    return re.compile(rf"{_OPENING}(?:(?:{'|'.join(words().letter_words)})[\s:]+)*", re.IGNORECASE)


@functools.cache
def _letter() -> re.Pattern[str]:
    allowed = "|".join(words().conjunctions + words().alternatives + words().after_letter)
    article = rf"(?![AaIi]\s+(?!(?:{allowed})(?:\W|$))[A-Za-zÀ-ÿ]{{2,}})"
    return re.compile(rf"{_OPENING}{article}([A-Za-z]){_ALONE}{_CLOSING}")


@functools.cache
def _separator() -> re.Pattern[str]:
    joined = "|".join(words().conjunctions)
    return re.compile(rf"\s*(?:[,;/&+、]\s*)*(?:(?:{joined})(?=\W|[A-Z](?:\W|$)))?\s*", re.IGNORECASE)


@functools.cache
def _undecided() -> re.Pattern[str]:
    between = "|".join(words().alternatives)
    return re.compile(rf"\s*,?\s*(?:{between})\s*{_OPENING}[A-Z](?=\W|$)", re.IGNORECASE)


def leading(text: str) -> Run | None:
    """The letters a text begins with ("A and C", "(B)", "option D because"), or None.

    An alternative ("A or B", "A-C") names no answer. Letters written together count if they are capitals in
    alphabetical order ("ACD"), so that words such as "BAD" do not.
    """
    start = _prefix().match(text)
    position = start.end() if start else 0
    joined = _JOINED.match(text, position)
    if joined and list(joined[1]) == sorted(set(joined[1])):
        return Run(tuple(joined[1]), "")
    letters, position = _collect(text, position)
    if not letters or _undecided().match(text, position):
        return None
    return Run(tuple(dict.fromkeys(letter.upper() for letter in letters)), text[position:])


def _collect(text: str, position: int) -> tuple[list[str], int]:
    letters: list[str] = []
    at = position
    while found := _letter().match(text, at):
        # "B a bit dilated": one list is written in one case
        if letters and found[1].isupper() != letters[0].isupper():
            break
        letters.append(found[1])
        position = found.end()
        separator = _separator().match(text, position)
        at = separator.end() if separator else position
    return letters, position
