"""Tokens of a text: words, numbers and marks, with their offsets."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from cardiolens.protocol.tasks.lexicon import Phrase


@dataclass(frozen=True, slots=True)
class Token:
    """A word or mark in lower case; a measure has its lower and upper bound and its unit."""

    text: str
    start: int
    end: int
    low: float = 0.0
    high: float = 0.0
    unit: str = ""


_NUMBER = r"\d+(?:[.,]\d+)?"
_TOKEN = re.compile(
    rf"(?P<low>{_NUMBER})(?:\s*(?:%\s*)?(?:-|–|to)\s*(?P<high>{_NUMBER}))?(?:\s*(?:±|\+/?-)\s*{_NUMBER})?"
    r"\s*(?P<unit>%|per ?cent|ml\s*/\s*m(?:2|²|\^2)|mm|cm)(?![\w/])"
    r"|(?P<sign>\([-–+]\)|(?<!\w)[-–+]ve\b)"
    rf"|(?P<inert>{_NUMBER}\s*(?:g\s*/\s*m(?:2|²|\^2)|l\s*/\s*min(?:\s*/\s*m(?:2|²|\^2))?|m\s*/\s*s|cm[2²]\s*/\s*m[2²]"
    r"|ms|msec|ml|g|kg|l|cm2|cm²|m2|m²|bpm|min|minutes|years?|days?|mcg|mg|mmhg)(?![\w/]))"
    r"|(?P<number>\d+(?:\.\d+)?)(?![\w])"
    r"|(?P<word>[^\W_]+(?:'s)?)"
    r"|(?P<joint>(?<=\w)[-‐‑–](?=\w))"
    r"|(?P<mark>[^\s\w])",
    re.IGNORECASE,
)
_BARE_SHARE = re.compile(r"\b(?:lv|rv)?ef(?:\s|:|=|\bis\b|\bof\b)*\Z", re.IGNORECASE)
_BARE_INDEX = re.compile(r"\b(?:lv|rv)?e[ds]vi(?:\s|:|=)*\Z", re.IGNORECASE)
_ENDS_INDEX = re.compile(r"[),;]|\.(?!\d)|$", re.MULTILINE)
_GOES_ON = re.compile(r"\s*(?:[-–/±<>]|to\b|z\b|points?\b)")
_UNITS = {"m": "ml/m2", "p": "%", "%": "%"}
_DASHES = frozenset("-–—=:")
_MOST_LETTERS = 24
_LEAST_LETTERS = 6  # of a correction: shorter words are too often one letter apart


def tokens(text: str, start: int, end: int) -> Iterator[Token]:
    """Yield the tokens of a span of text; a dash between spaces counts as a colon."""
    for match in _TOKEN.finditer(text, start, end):
        kind = match.lastgroup
        if kind == "unit":
            yield _measure(match)
        elif kind == "number":
            value = float(match.group())
            unit = "%" if _is_share(text, match) else "ml/m2" if _is_index(text, match) else ""
            yield Token("#" if unit else match.group(), match.start(), match.end(), value, value, unit)
        elif kind == "inert":
            yield Token("#", match.start(), match.end())
        elif kind == "sign":
            yield Token("positive" if "+" in match.group() else "negative", match.start(), match.end())
        elif kind == "joint":
            if text[match.start() - 1].isdigit():
                yield Token("-", match.start(), match.end())
        else:
            word = match.group().lower().removesuffix("'s")
            yield Token(":" if word in _DASHES else word, match.start(), match.end())


def _is_share(text: str, match: re.Match[str]) -> bool:
    """Return whether a number of two digits is an ejection fraction that leaves out its sign: `EF 63`."""
    before = text[max(0, match.start() - 20) : match.start()]
    return (
        match.group().isdigit()
        and len(match.group()) == 2
        and _BARE_SHARE.search(before) is not None
        and _GOES_ON.match(text, match.end()) is None
    )


def _is_index(text: str, match: re.Match[str]) -> bool:
    """Return whether a number is an indexed volume that leaves out its unit: `EDVi 112`."""
    before = text[max(0, match.start() - 12) : match.start()]
    return _BARE_INDEX.search(before) is not None and _ENDS_INDEX.match(text, match.end()) is not None


def _measure(match: re.Match[str]) -> Token:
    low = float(match["low"].replace(",", "."))
    high = float((match["high"] or match["low"]).replace(",", "."))
    unit = match["unit"].lower()
    if unit in ("mm", "cm"):
        scale = 10.0 if unit == "cm" else 1.0
        return Token("#", match.start(), match.end(), low * scale, high * scale, "mm")
    return Token("#", match.start(), match.end(), low, high, _UNITS[unit[0]])


def unfolded(stream: Iterator[Token], aliases: Mapping[str, Phrase]) -> Iterator[Token]:
    """Expand abbreviations; the words of an expansion keep the offsets of the abbreviation."""
    for token in stream:
        for word in aliases.get(token.text, (token.text,)):
            yield token if word == token.text else Token(word, token.start, token.end)


def respelled(stream: Iterator[Token], words: frozenset[str]) -> Iterator[Token]:
    """Correct long words with one wrong letter to a word of the vocabulary."""
    for token in stream:
        if (
            not _LEAST_LETTERS - 1 <= len(token.text) <= _MOST_LETTERS
            or token.text in words
            or not token.text.isalpha()
        ):
            yield token
        else:
            yield Token(_nearest(token.text, words), token.start, token.end)


@lru_cache(maxsize=65536)
def _nearest(word: str, words: frozenset[str]) -> str:
    near = (
        candidate
        for candidate in sorted(_one_off(word))
        if len(candidate) >= _LEAST_LETTERS and candidate in words
    )
    return next(near, word)


def _one_off(word: str) -> Iterator[str]:
    """Yield the words one edit away: a letter added, removed, changed or swapped, but not the first."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    for at in range(1, len(word) + 1):
        yield from (word[:at] + letter + word[at:] for letter in letters)
        if at < len(word):
            yield word[:at] + word[at + 1 :]
            yield from (word[:at] + letter + word[at + 1 :] for letter in letters)
            if at + 1 < len(word):
                yield word[:at] + word[at + 1] + word[at] + word[at + 2 :]
