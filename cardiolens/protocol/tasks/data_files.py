"""Data files of a protocol and of those that it inherits: heads, and entries of subtasks."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.study.anatomy import ANATOMY_NAME
from cardiolens.study.protocol_folder import DATA, HEAD, lineage, read_yaml, shipped

POINTS_NAME = "paper_points.yaml"
LEXICON_NAME = "lexicon.yaml"
BRIDGE_NAME = "bridge.yaml"
_NO_SUBTASKS = (HEAD, LEXICON_NAME, ANATOMY_NAME, POINTS_NAME, BRIDGE_NAME)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_KEYS = ("inherited", "inherits", "letters_first", "none_option", "option_sets", "protocol")


@dataclass(frozen=True)
class Head:
    """What `protocol.yaml` says of a protocol."""

    path: Path
    name: str
    option_sets: Mapping[str, Any]
    inherited: tuple[str, ...] | None  # subtasks that it asks of the protocol that it inherits; None: all
    none_option: bool  # whether options marked `none` are shown; if not, the parent decides who is asked
    letters_first: bool  # whether replies to its subtasks begin with their letters


@dataclass(frozen=True)
class Entry:
    """A subtask as its file gives it, with its options."""

    path: Path
    content: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.content.get("id"))


@dataclass(frozen=True)
class DataFiles:
    """The entries of a protocol: all that it knows, and the ids of those that it asks."""

    head: Head
    entries: tuple[Entry, ...]
    not_asked: frozenset[str]
    files: tuple[Path, ...]  # heads and files of subtasks, its own first


def read_data_files(protocol: str) -> DataFiles:
    """Read the files of one protocol; an entry of its own replaces the inherited one of the same id."""
    folder, *inherited = lineage(protocol)
    head = _head(folder / HEAD)
    own_files = _subtask_files(folder)
    own_entries = tuple(entry for path in own_files for entry in _entries(path, head))
    if not inherited:
        if not own_entries:
            raise InputError(
                f"{folder}: has no subtasks; expected YAML files with lists of subtasks beside {HEAD}"
            )
        return DataFiles(head, own_entries, frozenset(), (head.path, *own_files))
    base = read_data_files(inherited[0].name)
    base_ids = {entry.id for entry in base.entries}
    own_ids = {entry.id for entry in own_entries}
    ids_asked = base_ids - base.not_asked
    if unknown := sorted(set(head.inherited or ()) - ids_asked):
        raise InputError(
            f"{head.path}: inherited names {unknown[0]!r}; expected subtasks of {base.head.name}: "
            f"{', '.join(sorted(ids_asked))}"
        )
    ids_kept = ids_asked if head.inherited is None else set(head.inherited)
    entries = (*own_entries, *(entry for entry in base.entries if entry.id not in own_ids))
    files = (head.path, *own_files, *base.files)
    return DataFiles(head, entries, frozenset(base_ids - ids_kept - own_ids), files)


def _subtask_files(folder: Path) -> list[Path]:
    return sorted(
        path
        for path in folder.glob("*.yaml")
        if path.name not in _NO_SUBTASKS and not is_housekeeping(path.name)
    )


def _head(path: Path) -> Head:
    """Read the head of a protocol; a user's own must not take a shipped name."""
    head = read_yaml(path)
    name = head.get("protocol")
    has_own = path.parent.parent != DATA
    if not isinstance(name, str) or not name or (has_own and name in shipped()):
        raise InputError(
            f"{path}: protocol is {name!r}; give your data files a name of their own, so that no run record "
            f"confuses them with {' or '.join(shipped())}"
        )
    if not _NAME.fullmatch(name):
        raise InputError(
            f"{path}: protocol is {name!r}; expected letters, digits, '.', '-' and '_'; rename it"
        )
    option_sets = head.get("option_sets") or {}
    if unknown := sorted(head.keys() - set(_KEYS), key=str):
        raise InputError(f"{path}: unknown key {unknown[0]!r}; expected only {', '.join(_KEYS)}")
    if not isinstance(option_sets, dict):
        raise InputError(f"{path}: option_sets is {option_sets!r}; expected lists of options by name")
    inherited = head.get("inherited")
    if inherited is not None and not (isinstance(inherited, list) and "inherits" in head):
        raise InputError(f"{path}: inherited is {inherited!r}; expected a list of subtasks, beside inherits")
    for key in ("none_option", "letters_first"):
        if not isinstance(head.get(key, False), bool):
            raise InputError(f"{path}: {key} is {head[key]!r}; expected true or false")
    return Head(
        path,
        name,
        option_sets,
        None if inherited is None else tuple(map(str, inherited)),
        none_option=head.get("none_option", True),
        letters_first=head.get("letters_first", False),
    )


def _entries(path: Path, head: Head) -> Iterator[Entry]:
    tree = read_yaml(path)
    entries = tree.get("subtasks")
    if (
        set(tree) != {"subtasks"}
        or not isinstance(entries, list)
        or not all(isinstance(e, dict) for e in entries)
    ):
        raise InputError(f"{path}: must hold exactly one key 'subtasks', a list of subtasks")
    for entry in entries:
        content = {"letters_first": True, **entry} if head.letters_first else dict(entry)
        options = content.get("options")
        if isinstance(options, str):
            if options not in head.option_sets:
                raise InputError(
                    f"{path}: {entry.get('id')}: no option set {options!r}; "
                    f"{HEAD} has {sorted(head.option_sets)}"
                )
            content["options"] = head.option_sets[options]
        yield Entry(path, content)
