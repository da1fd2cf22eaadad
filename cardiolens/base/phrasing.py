"""Words of messages: a number of things, names with a meaning, and what a mistyped name may have meant."""

import difflib
from collections.abc import Iterable
from enum import StrEnum
from typing import Self


def counted(number: object, noun: str) -> str:
    """The number with its noun, e.g. `1 patient`, `20 patients` and `3 studies`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun[:-1]}ies" if noun.endswith("y") else f"{number} {noun}s"


class NameWithMeaning(StrEnum):
    """A name that files hold, with its meaning."""

    meaning: str

    def __new__(cls, name: str, meaning: str) -> Self:
        """Make a member; its value is its name."""
        member = str.__new__(cls, name)
        member._value_, member.meaning = name, meaning
        return member


_MOST_LIKELY = 3  # names that may have been meant
_LIKE = 0.6  # of difflib's ratio; below it a name is not what was meant
_MOST_LISTED = 40  # names of a sentence; a longer list hides the one that is sought ...
_LISTED_OF_MORE = 8  # ... and is cut to so many


def likely(name: str, legal: Iterable[str]) -> list[str]:
    """The legal names that are most like a mistyped one, the likeliest first; none if none is like it."""
    return difflib.get_close_matches(name, list(legal), n=_MOST_LIKELY, cutoff=_LIKE)


def nearest_first(name: str, legal: Iterable[str]) -> list[str]:
    """All legal names, those most like `name` first and the others in their order."""
    listed = list(legal)
    near = likely(name, listed)
    return [*near, *(other for other in listed if other not in near)]


def choices(name: str, legal: Iterable[str], where: str = "") -> str:
    """What may have been meant by `name`, then what may stand there: as the end of an error's sentence.

    The likeliest names stand first. A long list is cut; `where` says where all of them are listed.
    """
    listed = list(legal)
    meant = likely(name, listed)
    question = f"did you mean {' or '.join(meant)}? " if meant else ""
    ordered = nearest_first(name, listed)
    if len(ordered) <= _MOST_LISTED:
        return f"{question}choose from {', '.join(ordered)}"
    place = f": {where}" if where else ""
    return f"{question}choose from {', '.join(ordered[:_LISTED_OF_MORE])}, ... ({len(listed)} in all{place})"
