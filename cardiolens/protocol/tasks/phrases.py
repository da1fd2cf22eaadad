"""Phrase patterns of data files: `[x]` is optional, `(x|y)` is a choice."""

import functools
import re
from collections.abc import Iterable, Iterator
from itertools import product

Phrase = tuple[str, ...]  # words in lower case

_PIECE = re.compile(r"[\[\]()|]|[^\[\]()|]+")
_CLOSING = {"[": "]", "(": ")"}


def phrases(forms: Iterable[str]) -> Iterator[Phrase]:
    """Yield every phrase that the patterns expand to."""
    for text in forms:
        yield from _expanded(text)


@functools.lru_cache(maxsize=4096)
def _expanded(text: str) -> tuple[Phrase, ...]:
    if len(text) == 1:  # a lone bracket or bar is literal
        return ((text,),)
    pieces = _PIECE.findall(text.lower())
    choice, end = _choice(pieces, 0)
    if end != len(pieces):
        raise ValueError(f"{text!r} closes a bracket that was not opened")
    return tuple(dict.fromkeys(phrase for phrase in choice if phrase))


def _choice(pieces: list[str], at: int) -> tuple[list[Phrase], int]:
    """Return the alternatives from `at` to their closing bracket, and the position of that bracket."""
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
