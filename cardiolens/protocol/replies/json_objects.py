"""JSON objects in a text: alone, in prose or in a code fence."""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

_DECODER = json.JSONDecoder()
_BRACE = re.compile(r'\{(?=\s*+["}])')  # a failure elsewhere would cost the length of the text


class PlacedObject(NamedTuple):
    """A JSON object and its place in a text."""

    value: dict[str, Any]
    start: int
    end: int


def objects(text: str) -> Iterator[PlacedObject]:
    """Yield the outermost well-formed objects of a text in order."""
    position = 0
    while brace := _BRACE.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, brace.start())
        except ValueError:
            position = brace.end()
            continue
        except RecursionError:  # no answer is a thousand levels deep
            return
        yield PlacedObject(value, brace.start(), position)
