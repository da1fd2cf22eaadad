"""YAML of others: safe types only, and no aliases that write out to more than a bound."""

from pathlib import Path
from typing import Any

import yaml

from cardiolens.base.untrusted.bounded_files import read_text

_MOST_LEVELS = 200  # beyond some thousands the loader in C ends the process
_MOST_ENTRIES = 100_000  # with aliases written out; some lines of YAML can stand for billions


def read_yaml(path: Path, most: int) -> Any:
    """Return the value of a YAML file of at most `most` bytes; OSError or ValueError if it cannot be read."""
    try:
        return parse_yaml(read_text(path, most))
    except UnicodeError as error:
        raise ValueError(f"not YAML ({error})") from None


def parse_yaml(text: str) -> Any:
    """Return the value of YAML; ValueError if it is none, or its aliases are immense."""
    try:
        check_aliases(text)
        return yaml.load(text, Loader=yaml.CSafeLoader)  # ten times as fast as SafeLoader
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML ({' '.join(str(error).split())})") from None


def check_aliases(text: str) -> None:
    """Check that aliases (`*name`) are neither endless nor immense; ValueError, or YAMLError for no YAML."""
    columns = max(map(len, text.splitlines()), default=0)
    if columns + text.count("[") + text.count("{") > _MOST_LEVELS:  # a level takes a bracket or a column
        depth = 0
        for event in yaml.parse(text, Loader=yaml.CSafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _MOST_LEVELS:
                raise yaml.YAMLError("nested too deeply")
    root = yaml.compose(text, Loader=yaml.CSafeLoader)
    if root is not None and _entries(root, {}) > _MOST_ENTRIES:
        raise ValueError(f"its aliases stand for more than {_MOST_ENTRIES:,} entries")


def _entries(node: yaml.Node, weights: dict[int, float]) -> float:
    """Return the entries of a node with its aliases written out; infinitely many if one leads to itself."""
    if id(node) not in weights:
        weights[id(node)] = float("inf")  # until its own entries are counted
        entries = node.value if isinstance(node.value, list) else []
        inner = [part for entry in entries for part in (entry if isinstance(entry, tuple) else [entry])]
        weights[id(node)] = 1 + sum(_entries(part, weights) for part in inner)
    return weights[id(node)]
