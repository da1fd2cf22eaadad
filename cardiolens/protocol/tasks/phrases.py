"""Phrases of data files: lists in which [x] may be left out and (x|y) is a choice."""

import functools
import re
from collections.abc import Iterable, Iterator
from itertools import product

Phrase = tuple[str, ...]  # the words, in lower case

_PIECE = re.compile(r"[\[\]()|]|[^\[\]()|]+")
_CLOSING = {"[": "]", "(": ")"}


def phrases(forms: Iterable[str]) -> Iterator[Phrase]:
    """Every sequence of words that a list of phrases stands for."""
    for text in forms:
        yield from _expanded(text)


@functools.lru_cache(maxsize=4096)
def _expanded(text: str) -> tuple[Phrase, ...]:
    if len(text) == 1:  # a mark stands for itself
        return ((text,),)
    pieces = _PIECE.findall(text.lower())
    choice, end = _choice(pieces, 0)
    if end != len(pieces):
        raise ValueError(f"{text!r} closes a bracket that it did not open")
    return tuple(dict.fromkeys(phrase for phrase in choice if phrase))


def _choice(pieces: list[str], at: int) -> tuple[list[Phrase], int]:
    """The alternatives from a place to the bracket that closes them, and that bracket's place."""
    alternatives: list[Phrase] = []
    parts: list[list[Phrase]] = []
    while at < len(pieces) and pieces[at] not in "])":
        if pieces[at] == "|":
            alternatives += _joined(parts)
            parts = []
        elif pieces[at] in _CLOSING:
            inner, end = _choice(pieces, at + 1)
            if end == len(pieces) or pieces[end] != _CLOSING[pieces[at]]:
                raise ValueError(f"{''.join(pieces)!r} has a bracket that nothing closes")
            parts.append([(), *inner] if pieces[at] == "[" else inner)
            at = end
        else:
            parts.append([tuple(pieces[at].replace("-", " ").split())])
        at += 1
    return alternatives + _joined(parts), at


def _joined(parts: list[list[Phrase]]) -> list[Phrase]:
    return [tuple(word for part in chosen for word in part) for chosen in product(*parts)]
