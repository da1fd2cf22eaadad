"""Three rules by which other evaluations read replies, restated: how much of a ranking is its reader.

Each sees the text of the first reply and the letters of the options, and nothing else; what a rule does not
find is a wrong answer.
"""

import re
from collections.abc import Callable, Mapping

_ANSWER = re.compile(r"answer\s*:\s*\(?([A-Z](?:\s*(?:,|and)\s*[A-Z])*)(?![A-Za-z])", re.IGNORECASE)
_CAPITAL = re.compile(r"(?<![A-Za-z])[A-Z](?![A-Za-z'’])")

Letters = tuple[str, ...]


def last_answer(text: str, letters: Letters) -> Letters:
    """The letters after the last "ANSWER:"; nothing without one, and nothing if one is no option."""
    marks = _ANSWER.findall(text)
    return _legal(_CAPITAL.findall(marks[-1].upper().replace("AND", ",")), letters) if marks else ()


def first_capital(text: str, letters: Letters) -> Letters:
    """The first capital letter of an option that stands alone, wherever it stands."""
    return next(((letter,) for letter in _CAPITAL.findall(text) if letter in letters), ())


def all_capitals(text: str, letters: Letters) -> Letters:
    """All capital letters of options that stand alone, wherever they stand."""
    found = set(_CAPITAL.findall(text))
    return tuple(letter for letter in letters if letter in found)


def _legal(found: list[str], letters: Letters) -> Letters:
    return tuple(letter for letter in letters if letter in found) if set(found) <= set(letters) else ()


PEER_READINGS: Mapping[str, Callable[[str, Letters], Letters]] = {
    "last_answer": last_answer,
    "first_capital": first_capital,
    "all_capitals": all_capitals,
}
