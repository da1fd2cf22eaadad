"""Prompt tokens before a model is asked: what the plan needs to know, and an estimate without a processor."""

import math
from typing import Protocol

_CHARACTERS = 3  # a token of text: fewer than tokenizers reach on English, so that the estimate errs upwards


class TokenCounter(Protocol):
    """Counts the tokens of prompts; sizes are (height, width) of frames as rendered."""

    def image_tokens(self, size: tuple[int, int], /) -> int:
        """Tokens that one frame adds."""
        ...

    def count(self, system: str, text: str, sizes: tuple[tuple[int, int], ...]) -> int:
        """A whole prompt."""
        ...

    def count_shown(
        self, system: str, frames: str, sizes: tuple[tuple[int, int], ...], *, exact: bool
    ) -> tuple[int, str]:
        """Everything up to the last frame; and what the model's template puts after the question."""
        ...

    def count_asked(self, question: str) -> int:
        """Everything after the last frame."""
        ...


class EstimatedTokens:
    """A declared number of tokens a frame, and one for every three characters of text."""

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

    def count_asked(self, question: str) -> int:
        return _of_text(question)


def _of_text(text: str) -> int:
    return math.ceil(len(text) / _CHARACTERS)
