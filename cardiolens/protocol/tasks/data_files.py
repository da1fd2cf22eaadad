"""Data files of a protocol and of those that it inherits: heads, and entries of subtasks."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.config.base import Spec, validated
from cardiolens.study.anatomy import ANATOMY_NAME, DATA, HEAD, lineage, read_yaml, shipped

POINTS_NAME = "paper_points.yaml"
LEXICON_NAME = "lexicon.yaml"
_BRIDGE_NAME = "bridge.yaml"  # what another protocol asks instead, for the docs
_NO_SUBTASKS = (HEAD, LEXICON_NAME, ANATOMY_NAME, POINTS_NAME, _BRIDGE_NAME)


class Head(Spec):
    """What `protocol.yaml` says of a protocol."""

    model_config = ConfigDict(strict=True)

    protocol: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]  # its name
    option_sets: dict[str, Any] = Field(default_factory=dict)
    inherits: str | None = None
    inherited: list[str] | None = None  # subtasks that it asks of the protocol that it inherits; None: all
    none_option: bool = True  # whether options marked `none` are shown; else the parent decides who is asked
    letters_first: bool = False  # whether replies to its subtasks begin with their letters


class Entry(NamedTuple):
    """A subtask as its file gives it, with its options."""

    path: Path
    id: str
    content: Mapping[str, Any]


@dataclass(frozen=True)
class DataFiles:
    """The entries of a protocol: all that it knows, and the ids of those that it asks."""

    head: Head
    entries: tuple[Entry, ...]
    asked: frozenset[str]
    files: tuple[Path, ...]  # heads and files of subtasks, its own first


def read_data_files(protocol: str) -> DataFiles:
    """Read the files of one protocol; an entry of its own replaces the inherited one of the same id."""
    folder, *inherited = lineage(protocol)
    head = _head(folder / HEAD)
    own_files = sorted(
        path
        for path in folder.glob("*.yaml")
        if path.name not in _NO_SUBTASKS and not is_housekeeping(path.name)
    )
    entries = tuple(entry for path in own_files for entry in _entries(path, head))
    ids, files = frozenset(entry.id for entry in entries), (folder / HEAD, *own_files)
    if not inherited:
        if not entries:
            raise InputError(
                f"{folder}: has no subtasks; expected YAML files with lists of subtasks beside {HEAD}"
            )
        return DataFiles(head, entries, ids, files)
    base = read_data_files(inherited[0].name)
    kept = base.asked if head.inherited is None else frozenset(head.inherited)
    if unknown := sorted(kept - base.asked):
        raise InputError(
            f"{folder / HEAD}: inherited names {unknown[0]!r}; expected subtasks of {base.head.protocol}: "
            f"{', '.join(sorted(base.asked))}"
        )
    entries += tuple(entry for entry in base.entries if entry.id not in ids)
    return DataFiles(head, entries, ids | kept, (*files, *base.files))


def _head(path: Path) -> Head:
    """Read the head of a protocol; a user's own must not take a shipped name."""
    head = validated(Head, read_yaml(path), f"{path}: ")
    if path.parent.parent != DATA and head.protocol in shipped():
        raise InputError(
            f"{path}: protocol is {head.protocol!r}; give your data files a name of their own, so that no "
            f"run record confuses them with {' or '.join(shipped())}"
        )
    if head.inherited is not None and head.inherits is None:
        raise InputError(f"{path}: inherited names subtasks, and inherits no protocol; name it")
    return head


def _entries(path: Path, head: Head) -> Iterator[Entry]:
    tree = read_yaml(path)
    entries = tree.get("subtasks")
    is_list = isinstance(entries, list) and all(isinstance(entry, dict) for entry in entries)
    if set(tree) != {"subtasks"} or not isinstance(entries, list) or not is_list:
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
        yield Entry(path, str(content.get("id")), content)
