"""YAML of strangers: safe types only, and no aliases that write out to more than a bound."""

from pathlib import Path
from typing import Any

import yaml

from cardiolens.base.untrusted.bounded_files import read_text

_MOST_LEVELS = 200
_MOST_ENTRIES = 100_000  # with aliases written out; some lines of YAML can stand for billions


def read_yaml(path: Path, most: int) -> Any:
    """Value of a YAML file of at most `most` bytes; OSError or ValueError where it cannot be read."""
    try:
        return parse_yaml(read_text(path, most))
    except UnicodeError as error:
        raise ValueError(f"not YAML ({error})") from None


def parse_yaml(text: str) -> Any:
    """Value of YAML; ValueError where it is none, is nested too deeply, or its aliases are immense."""
    try:
        _check_depth(text)
        loader = yaml.CSafeLoader(text)  # ten times as fast as SafeLoader
        root = loader.get_single_node()
        _check(root)
        return None if root is None else loader.construct_document(root)
    except yaml.YAMLError as error:
        raise ValueError(f"not YAML ({' '.join(str(error).split())})") from None


def check_aliases(text: str) -> None:
    """Raise ValueError where aliases (`*name`) make YAML endless or immense; YAMLError where it is none."""
    _check_depth(text)
    _check(yaml.compose(text, Loader=yaml.CSafeLoader))


def _check_depth(text: str) -> None:
    """Raise YAMLError for YAML that is nested too deeply: the loader in C would end the process.

    A level of nesting takes a bracket or a column, so most files need no look at their events.
    """
    columns = max(map(len, text.splitlines()), default=0)
    if columns + text.count("[") + text.count("{") <= _MOST_LEVELS:
        return
    depth = 0
    for event in yaml.parse(text, Loader=yaml.CSafeLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MOST_LEVELS:
            raise yaml.YAMLError("nested too deeply")


def _check(root: yaml.Node | None) -> None:
    if root is not None and _entries(root, {}) > _MOST_ENTRIES:
        raise ValueError(f"its aliases stand for more than {_MOST_ENTRIES:,} entries")


def _entries(node: yaml.Node, weights: dict[int, float]) -> float:
    """Entries of a node with its aliases written out; infinitely many if one leads back to itself."""
    if id(node) not in weights:
        weights[id(node)] = float("inf")  # until its own entries are counted
        entries = node.value if isinstance(node.value, list) else []
        inner = [part for entry in entries for part in (entry if isinstance(entry, tuple) else [entry])]
        weights[id(node)] = 1 + sum(_entries(part, weights) for part in inner)
    return weights[id(node)]
