"""Decoding constraints: the legal replies as option letters, a JSON schema, or frame names."""

import json
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from string import ascii_uppercase

UNSHOWN = "\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufdd0-\ufdef\ufffc"
"""Control characters, line ends, changes of direction and marks of prompts, as a class of characters."""

_UNSHOWN = re.compile(f"[{UNSHOWN}]")
_RESERVED = re.compile("[\ufdd0-\ufdef\ufffc]")
_FULL_WIDTH = re.compile("[\uff21-\uff3a\uff41-\uff5a]")
_LATIN_TWINS = str.maketrans("АВСЕНІЈКМОРЅТХасеорхіјΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABCEHIJKMOPSTXaceopxijABEZHIKMNOPTYX")
_BETWEEN_LETTERS = frozenset(
    {"option", "answer", "choice", "letter", "and", "or", "both", "either", "neither", "nor"}
)


def option_problems(options: Sequence[tuple[str, str]], *, several: bool = False) -> list[str]:
    """Return what is wrong with options (key, text) beside each other; `several` of them may be right."""
    keys = [key for key, _ in options]
    rules = {
        f"options {keys} are too few; at least two are needed": len(keys) < 2,
        f"option keys {keys} are not unique": len(set(keys)) != len(keys),
        f"{len(keys)} options of answer_type multi; expected at most {MOST_SEVERAL}, as legal replies double "
        "with each; ask in several questions": several and len(keys) > MOST_SEVERAL,
    }
    letters = {letter.casefold() for letter in (*keys, *ascii_uppercase[: len(keys)])}
    problems = [text for text, wrong in rules.items() if wrong]
    problems += [f"option {key} {wrong}" for key, text in options if (wrong := _problem(text, letters))]
    key_of: dict[str, str] = {}  # first option of a text
    for key, text in options:
        first = key_of.setdefault(fold(unicodedata.normalize("NFKC", text)), key)
        if first != key:
            problems.append(
                f"options {first} and {key} have the same text except for case and white "
                "space; expected distinct texts; reword or remove one"
            )
    return problems


def reserved_in(text: str) -> str:
    """Return what is wrong with words of a prompt that hold a mark of a frame or a reply; empty if none."""
    found = _RESERVED.search(text)
    return (
        f"holds U+{ord(found[0]):04X}, which is reserved for frames and replies; remove it" if found else ""
    )


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


MOST_SEVERAL = 10  # options of a multi-select question: 1,023 legal replies, each a string of the constraint
_WHOLE, _LAST_LINE, _FIRST_LINE = "choice", "last_line", "first_line"  # answer formats that decoding enforces
_SCHEMA = "schema"
_NAMING = "naming"
_SPECIAL = re.compile(r"[\\^$.|?*+()\[\]{}/-]")  # characters of regular expressions


@dataclass(frozen=True, slots=True)
class Naming:
    """A reply of one JSON line with `least` to `most` of these frame names.

    Not a schema: JSON allows endless white space, and small models fill their replies with it.
    """

    names: tuple[str, ...]
    least: int
    most: int

    @property
    def pattern(self) -> str:
        """Regular expression of legal replies, e.g. `{"frames": ["cine_4ch phase 1", "lge_sax slice 2"]}`."""
        quoted = f'"{_any_of([json.dumps(name)[1:-1] for name in self.names])}"'
        several = f"{quoted}(, {quoted}){{0,{self.most - 1}}}"
        return rf'\{{"frames": \[{several if self.least else f"({several})?"}\]\}}'


@dataclass(frozen=True, slots=True)
class Constraint:
    """Decoding constraint on a reply; without legal replies, schema and naming, any reply is legal.

    `text` is hashed into the request key. The plan and the stream both make the constraint of a request by
    `constraint_of`, or from the declaration of its chain (`naming`), so key and constraint cannot differ.
    """

    legal: tuple[str, ...] = ()
    line: str = ""  # which line holds the legal reply, beside reasons; empty: the whole reply is legal
    schema: str = ""  # JSON schema of the whole reply
    naming: Naming | None = None  # for replies that name frames

    @property
    def text(self) -> str:
        """Serialised constraint, e.g. `choice: A|B|A, B`; empty if any reply is legal."""
        if self.schema:
            return f"{_SCHEMA}: {self.schema}"
        if self.naming is not None:
            return f"{_NAMING}: {self.naming.pattern}"
        return f"{self.line or _WHOLE}: {'|'.join(self.legal)}" if self.legal else ""

    @property
    def pattern(self) -> str:
        """Regular expression: any text and a last line with a legal reply, or that line and then reasons."""
        legal = "|".join(self.legal)
        return rf"({legal})\nReason: (.|\n)*" if self.line == _FIRST_LINE else rf"(.|\n)*\nANSWER: ({legal})"


FREE = Constraint()


def letters_of(option_keys: Iterable[str]) -> tuple[str, ...]:
    """Return the letters of displayed options in their order: those of the catalogue, which ascend."""
    return tuple(sorted(option_keys))


@lru_cache(maxsize=4096)
def constraint_of(
    answer_format: str, answer_type: str, option_keys: tuple[str, ...], exclusive: tuple[str, ...]
) -> Constraint:
    """Return the constraint of one request; FREE for answer formats that decoding does not enforce.

    For answer format `schema`, the only option key is the text of a JSON schema.
    """
    if answer_format == _SCHEMA:
        return Constraint(schema=option_keys[0])
    if answer_format not in (_WHOLE, _LAST_LINE, _FIRST_LINE):
        return FREE
    line = "" if answer_format == _WHOLE else answer_format
    return Constraint(legal_replies(answer_type, option_keys, exclusive), line)


@lru_cache(maxsize=4096)
def legal_replies(answer_type: str, option_keys: Sequence[str], exclusive: Sequence[str]) -> tuple[str, ...]:
    """Return the legal replies in displayed letters: one letter, or any non-empty set if multi (`A, C`).

    `option_keys` are the original keys in the order displayed. An exclusive option is legal only alone.
    """
    letters = letters_of(option_keys)
    if answer_type != "multi":
        return tuple(letters)
    alone = [letter for letter, key in zip(letters, option_keys, strict=True) if key in exclusive]
    combinable = [letter for letter in letters if letter not in alone]
    sets = [
        ", ".join(chosen)
        for size in range(1, len(combinable) + 1)
        for chosen in combinations(combinable, size)
    ]
    return tuple(alone + sets)


def _any_of(names: Sequence[str]) -> str:
    """Return a regular expression that matches any of the names.

    Common prefixes are merged: compiling hundreds of plain alternatives may take seconds.
    """
    tails: dict[str, list[str]] = {}
    for name in names:
        tails.setdefault(name[:1], []).append(name[1:])
    forms = [
        _SPECIAL.sub(r"\\\g<0>", first) + (_any_of(rest) if first else "") for first, rest in tails.items()
    ]
    return forms[0] if len(forms) == 1 else f"({'|'.join(forms)})"
