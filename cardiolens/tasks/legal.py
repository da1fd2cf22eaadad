"""The replies that structured decoding allows to a question asked with letters."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
CONSTRAINED = ("choice", "last_line")  # answer formats by structured decoding: the whole reply, or its end


@lru_cache(maxsize=4096)
def legal_replies(
    answer_type: str, option_keys: tuple[str, ...], exclusive: tuple[str, ...]
) -> tuple[str, ...]:
    """Every legal reply in displayed letters: one letter, or for multi-select any non-empty set, e.g. `A, C`.

    `option_keys` are the original keys in the order displayed; an exclusive option stands alone.
    """
    letters = LETTERS[: len(option_keys)]
    if answer_type != "multi":
        return tuple(letters)
    alone = [letter for letter, key in zip(letters, option_keys, strict=True) if key in exclusive]
    free = [letter for letter in letters if letter not in alone]
    sets = [", ".join(chosen) for size in range(1, len(free) + 1) for chosen in combinations(free, size)]
    return tuple(alone + sets)


def last_line_pattern(legal: Sequence[str]) -> str:
    """A regular expression: any text, then a last line `ANSWER: ` with one of the legal replies."""
    return rf"(.|\n)*\nANSWER: ({'|'.join(legal)})"
