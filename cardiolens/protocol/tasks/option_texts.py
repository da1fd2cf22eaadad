"""Texts of options, as a prompt lists them and a reply names them."""

import re
import unicodedata
from collections.abc import Sequence
from string import ascii_uppercase

UNSHOWN = "\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffc"
"""Control characters, line ends, changes of direction and marks of prompts, as a class of characters."""

_UNSHOWN = re.compile(f"[{UNSHOWN}]")
_FULL_WIDTH = re.compile("[\uff21-\uff3a\uff41-\uff5a]")
_LATIN_TWINS = str.maketrans("АВСЕНІЈКМОРЅТХасеорхіјΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABCEHIJKMOPSTXaceopxijABEZHIKMNOPTYX")
_BETWEEN_LETTERS = frozenset(
    {"option", "answer", "choice", "letter", "and", "or", "both", "either", "neither", "nor"}
)


def option_problems(options: Sequence[tuple[str, str]]) -> list[str]:
    """Return what is wrong with the texts of options (key, text) beside each other."""
    letters = {*(key for key, _ in options), *ascii_uppercase[: len(options)]}
    problems = [
        f"option {key} {problem}"
        for key, text in options
        if (problem := _problem(text, {letter.casefold() for letter in letters}))
    ]
    key_of: dict[str, str] = {}  # first option of a text
    for key, text in options:
        first = key_of.setdefault(fold(unicodedata.normalize("NFKC", text)), key)
        if first != key:
            problems.append(
                f"options {first} and {key} have one text but for case and white space; expected "
                "texts that a reader can tell apart; reword or remove one"
            )
    return problems


def _problem(text: str, letters: set[str]) -> str:
    if not fold(text):
        return "has a blank text; expected words; write them"
    if unshown := _UNSHOWN.search(text):
        return (
            f"holds U+{ord(unshown[0]):04X}; expected one line without control characters or marks of "
            "prompts; remove it"
        )
    if wide := _FULL_WIDTH.search(text):
        plain = unicodedata.normalize("NFKC", wide[0])
        return f"holds the full-width letter {wide[0]!r}; expected ordinary letters; write {plain!r}"
    words = re.findall(r"\w+", unicodedata.normalize("NFKC", text).translate(_LATIN_TWINS).casefold())
    if letters.intersection(words) and letters.union(_BETWEEN_LETTERS).issuperset(words):
        return (
            f"is {text!r}, which in a reply would be the letter of an option; expected words; write for "
            f"example 'region {text}'"
        )
    return ""


def fold(text: str) -> str:
    """Return a text as people compare it: without case and invisible characters, white space as one blank."""
    if not (text.isascii() and text.isprintable()):
        text = "".join(
            char for char in text if char.isspace() or unicodedata.category(char) not in _INVISIBLE
        )
        text = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(text.casefold().split())


_INVISIBLE = frozenset({"Cc", "Cf"})  # control characters, joiners, marks of direction
