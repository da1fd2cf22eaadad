"""The reading of one part of a reply: its options, or that it is unreadable."""

from dataclasses import dataclass

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The options in a part of a reply; none if it cannot be parsed completely."""

    keys: Keys
    names_options: bool = True  # a denial ("cannot be determined") names none
    contradicts: bool = False

    @property
    def readable(self) -> bool:
        return bool(self.keys)


UNREADABLE = Reading(())
DENIAL = Reading((), names_options=False)
CONTRADICTION = Reading((), contradicts=True)
"""Two answers without order, or one that the reply itself puts in doubt."""


class NotReadableError(Exception):
    """A text names options in a way that the grammar does not cover."""


def reading_of(keys: list[str]) -> Reading:
    """Build a reading with each option once, in order of mention."""
    return Reading(tuple(dict.fromkeys(keys)))
