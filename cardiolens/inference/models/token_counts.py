"""Prompt token counters for the plan: their interface, and an estimate that needs no processor."""

import math
from typing import Protocol

_CHARACTERS = 3  # per token; on English, tokenizers reach more, so the estimate errs upwards


class TokenCounter(Protocol):
    """Counts the tokens of prompts; sizes are the (height, width) of rendered frames."""

    def image_tokens(self, size: tuple[int, int], /) -> int:
        """Count the tokens of one frame."""
        ...

    def count(self, system: str, text: str, sizes: tuple[tuple[int, int], ...]) -> int:
        """Count the tokens of a whole prompt."""
        ...

    def count_shown(
        self, system: str, frames: str, sizes: tuple[tuple[int, int], ...], *, exact: bool
    ) -> tuple[int, str]:
        """Return the tokens up to the last frame, and the text that the template adds after the question."""
        ...

    def count_asked(self, question: str, tail: str, /) -> int:
        """Count the tokens of the text after the last frame and of the template's text after it, `tail`."""
        ...


class EstimatedTokens:
    """Estimate from a declared number of tokens per frame, and one token per three characters of text."""

    def __init__(self, image_tokens: int) -> None:
        self._image_tokens = image_tokens

    def image_tokens(self, size: tuple[int, int], /) -> int:
        return self._image_tokens

    def count(self, system: str, text: str, sizes: tuple[tuple[int, int], ...]) -> int:
        return _of_text(system) + _of_text(text) + len(sizes) * self._image_tokens

    def count_shown(
        self, system: str, frames: str, sizes: tuple[tuple[int, int], ...], *, exact: bool
    ) -> tuple[int, str]:
        return self.count(system, frames, sizes), ""

    def count_asked(self, question: str, tail: str, /) -> int:
        return _of_text(f"{question}{tail}")


def _of_text(text: str) -> int:
    return math.ceil(len(text) / _CHARACTERS)
