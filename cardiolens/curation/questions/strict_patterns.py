"""The packaged words of strictness: patterns of what a report may not be taken to say."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiolens.protocol.tasks.protocol import read_yaml


@functools.cache
def words() -> Mapping[str, Any]:
    """The content of words.yaml, read once."""
    return read_yaml(Path(__file__).parent / "words.yaml")


def has(pattern: str, phrase: str) -> bool:
    """Return whether a pattern occurs in a text, without regard to case."""
    return re.search(pattern, phrase, re.IGNORECASE) is not None


def has_for(kind: str, of: str, phrase: str) -> bool:
    """Return whether a text has the words of a kind for a subtask or sequence; not where there are none."""
    pattern = words()[kind].get(of)
    return pattern is not None and has(pattern, phrase)
