"""Slots of a house's sentences: `#` for a number, `{}` for words, `{name}` for a value of that name."""

import re
from collections import Counter

SLOT = re.compile(r"(?P<hash>#)(?P<at>\d*)|\{(?P<name>[a-z]*)(?P<place>\d*)\}")

NUMBER, WORDS = "#", ""
"""The kinds of a slot beside the names of a house's values."""

Slot = tuple[str, int]
"""A kind, and which one of its kind it is, from 1."""


def slots(phrase: str) -> list[Slot]:
    """Return the slots of a phrase in order: `#`, `{}` and `{name}`, or with a number `#2` and `{name2}`."""
    counts: Counter[str] = Counter()
    found = []
    for match in SLOT.finditer(phrase):
        kind = _kind(match)
        counts[kind] += 1
        found.append((kind, int(match["at"] or match["place"] or counts[kind])))
    return found


def numbering(phrase: str) -> set[tuple[str, bool]]:
    """Return the kinds of the slots of a phrase, each with whether one of it has a number."""
    return {(_kind(match), bool(match["at"] or match["place"])) for match in SLOT.finditer(phrase)}


def _kind(match: re.Match[str]) -> str:
    return NUMBER if match["hash"] else match["name"]


def filled(phrase: str, contents: dict[Slot, str]) -> str:
    """Return words of ours with their slots filled; a sentence with an empty content is left out."""
    kept_sentences = []
    for sentence in re.split(r"(?<=\.)\s+", _numbered(phrase)):
        fillings = [contents[slot] for slot in slots(sentence)]
        if all(fillings):
            rest = iter(fillings)
            kept_sentences.append(SLOT.sub(lambda _, rest=rest: next(rest), sentence))
    return " ".join(kept_sentences).rstrip(". ")


def _numbered(phrase: str) -> str:
    """Return a phrase each of whose slots has its number, so that it can be cut."""
    order = iter(slots(phrase))

    def spelled(_: re.Match[str]) -> str:
        kind, number = next(order)
        return f"#{number}" if kind == NUMBER else f"{{{kind}{number}}}"

    return SLOT.sub(spelled, phrase)
