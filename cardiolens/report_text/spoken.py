"""Spoken punctuation of a dictation: `no oedema period` is a sentence."""

import re

_SPOKEN = re.compile(
    r"(?<=[a-z\d]) +(?:(?P<stop>period|full stop|new paragraph|new line)|(?P<comma>comma)|(?P<colon>colon))"
    r"(?=\s|$)"
)


def of_dictation(text: str) -> str:
    """Replace the spoken marks of a text by written ones; the text keeps its length."""

    def mark(match: re.Match[str]) -> str:
        sign = "." if match["stop"] else "," if match["comma"] else ":"
        return sign + " " * (len(match[0]) - 1)

    return _SPOKEN.sub(mark, text)
