"""JSON objects in a reply, whole or in prose or a code fence."""

import json
import re
from collections.abc import Iterator

_BRACE = re.compile(r"\{")
_DECODER = json.JSONDecoder()


def objects(text: str) -> Iterator[dict[str, object]]:
    """The JSON objects of a text that are not inside another, in their order."""
    position = 0
    while brace := _BRACE.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, brace.start())
        except ValueError:
            position = brace.end()
            continue
        except RecursionError:  # nobody's answer is a thousand levels deep
            return
        yield value
