"""Reading of one part of a reply: the options that it names, or that it cannot be read."""

from dataclasses import dataclass

Keys = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reading:
    """The options that a part of a reply names; none where it cannot be read completely."""

    keys: Keys
    names_options: bool = True  # a denial ("cannot be determined") names none

    @property
    def readable(self) -> bool:
        return bool(self.keys)


UNREADABLE = Reading(())
DENIAL = Reading((), names_options=False)


class NotReadableError(Exception):
    """A text names options in a way that the grammar does not know."""


def reading_of(keys: list[str]) -> Reading:
    """Options each once, in the order named."""
    return Reading(tuple(dict.fromkeys(keys)))
