"""Packaged patterns (words.yaml) that make extraction strict: what a report must not be taken to say."""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cardiolens.study.anatomy import read_yaml


@functools.cache
def words() -> Mapping[str, Any]:
    """Load words.yaml once."""
    return read_yaml(Path(__file__).parent / "words.yaml")


def has(pattern: str, phrase: str) -> bool:
    """Return whether a pattern occurs in a text, ignoring case."""
    return re.search(pattern, phrase, re.IGNORECASE) is not None


def has_for(kind: str, of: str, phrase: str) -> bool:
    """Return whether a text matches the pattern of a kind for a subtask or sequence, if there is one."""
    pattern = words()[kind].get(of)
    return pattern is not None and has(pattern, phrase)
