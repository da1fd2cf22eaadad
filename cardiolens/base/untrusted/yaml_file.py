"""YAML of others: safe types only, of bounded depth, and without aliases within aliases."""

from pathlib import Path
from typing import Any

import yaml

from cardiolens.base.untrusted.bounded_files import read_text

_MOST_LEVELS = 200  # beyond some thousands the loader in C ends the process


def read_yaml(path: Path, most: int) -> Any:
    """Return the value of a YAML file of at most `most` bytes; OSError or ValueError if it cannot be read."""
    try:
        return parse_yaml(read_text(path, most))
    except UnicodeError as error:
        raise ValueError(f"not YAML ({error})") from None


def parse_yaml(text: str) -> Any:
    """Return the value of YAML; ValueError if it is none, or has too many levels or aliases."""
    try:
        check_aliases(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)  # ten times as fast as SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML ({' '.join(str(error).split())})") from None


def check_aliases(text: str) -> None:
    """Check levels and aliases (`*name`) before anything is built; ValueError, or YAMLError for no YAML.

    No alias may lie within what an anchor names: nested, some lines stand for billions.
    """
    anchors: list[bool] = []  # of the open collections
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        if isinstance(event, yaml.CollectionStartEvent):
            anchors.append(event.anchor is not None)
            if len(anchors) > _MOST_LEVELS:
                raise yaml.YAMLError("nested too deeply")
        elif isinstance(event, yaml.CollectionEndEvent):
            anchors.pop()
        elif isinstance(event, yaml.AliasEvent) and any(anchors):
            raise ValueError(f"its aliases are nested (*{event.anchor}); write them out")
