"""The catalogue of subtasks, loaded from data files and checked."""

import hashlib
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping, read_bytes
from cardiolens.config.base import describe
from cardiolens.protocol.tasks.house_style import HouseStyle
from cardiolens.protocol.tasks.lexicon import Lexicon, load_lexicon
from cardiolens.protocol.tasks.option_texts import option_problems
from cardiolens.protocol.tasks.wordings import wording_problems
from cardiolens.study.anatomy import ANATOMY_NAME, HEART, Anatomy, anatomy_of, heart
from cardiolens.study.protocol_folder import DATA, MOST_BYTES, protocol_folder, read_yaml, shipped
from cardiolens.study.sequences import CASE_IMAGES, PICTURE

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_POINTS = "paper_points.yaml"
_NO_SUBTASKS = ("protocol.yaml", "lexicon.yaml", ANATOMY_NAME, _POINTS)

AnswerType = Literal["single", "ordinal", "multi", "report"]
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Option:
    """One answer option; correct if the truth has one of `values`."""

    key: Annotated[str, Field(pattern="^[A-Z]$")]
    text: str
    values: tuple[str, ...] = ()
    normal: bool = False

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Subtask:
    """One kind of question: wording, options, views shown, and the condition for asking.

    `route` holds volumes or pools of the anatomy and their weights, in priority order. A conditional subtask
    is asked if the true answer of its parent is one of `parent_answers`. At least one view of
    `unreadable_without` must be present.
    """

    id: str
    tier: Literal[1, 2, 3]
    sequence: str
    field: str  # of the report, and of the truth
    question: str
    answer_type: AnswerType
    route: tuple[tuple[str, int], ...]
    provenance: str
    options: tuple[Option, ...] = ()
    exclusive: tuple[str, ...] = ()
    parent: str | None = None
    parent_answers: tuple[str, ...] = ()
    unreadable_without: tuple[str, ...] = ()
    temporal: bool = False  # answering requires motion
    checklist: tuple[str, ...] = ()
    report_fields: tuple[str, ...] = ()  # of a report: subtasks that define its fields
    wordings: tuple[str, ...] = ()  # alternatives to `question` (protocol 16.10)

    __pydantic_config__ = _STRICT

    @property
    def finding(self) -> str:
        """Name of the finding that answers the question, e.g. `lge.levels`."""
        return f"{self.sequence}.{self.field}"

    @property
    def keys(self) -> tuple[str, ...]:
        """The option keys in catalogue order."""
        return tuple(option.key for option in self.options)

    def text(self, key: str) -> str:
        """Return the text of an option."""
        return next(option.text for option in self.options if option.key == key)


_SUBTASK = TypeAdapter(Subtask)
_POINTS_OF = TypeAdapter(dict[str, tuple[str, ...]])  # by subtask


@dataclass(frozen=True)
class Catalogue:
    """All subtasks of one protocol, by id in the order of the data files."""

    protocol: str
    subtasks: Mapping[str, Subtask] = field(hash=False)
    lexicons: Mapping[str, Lexicon] = field(hash=False)  # of report text, by sequence
    sha256: str  # of the data files of subtasks, options and reports
    anatomy: Anatomy  # what studies hold and what stands in for what
    paper_points: Mapping[str, tuple[str, ...]] = field(hash=False)  # of prompt style `paper`, by subtask
    house: HouseStyle = field(default_factory=HouseStyle, compare=False)  # of a group's reports

    def __getitem__(self, subtask: str) -> Subtask:
        try:
            return self.subtasks[subtask]
        except KeyError:
            raise InputError(
                f"subtask {subtask!r} is not in protocol {self.protocol!r}; it has {', '.join(self.subtasks)}"
            ) from None

    def texts(self, sequence: str) -> dict[str, frozenset[str]]:
        """Return the option texts of every field in the reports of a sequence."""
        return _fields(self.subtasks, sequence)

    def children(self, subtask: str) -> tuple[Subtask, ...]:
        """Return the conditional subtasks whose parent is this subtask."""
        return tuple(child for child in self.subtasks.values() if child.parent == subtask)


def load_catalogue(protocol: str) -> Catalogue:
    """Load the catalogue of a protocol: a shipped one by name, or a user's own by its folder.

    A folder holds YAML files: `protocol.yaml` with the name and shared option sets, `lexicon.yaml` if there
    are report subtasks, `anatomy.yaml` unless they are about the heart, and others with lists of `subtasks`.
    Files that did not change since the last call are not parsed again. InputError names the file, the subtask
    and the field that is wrong.
    """
    folder = protocol_folder(protocol)
    return _loaded(protocol, folder.absolute(), _content_digest(folder))


def _content_digest(folder: Path) -> str:
    """Digest of the names and bytes of a protocol's files; those that cannot be read count as empty."""
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.yaml")):
        content = b""
        with suppress(OSError):  # which the loading of the file then names
            content = read_bytes(path, MOST_BYTES)
        digest.update(f"{path.name}\0{len(content)}\0".encode("utf-8", "surrogateescape") + content)
    return digest.hexdigest()


@lru_cache(maxsize=8)
def _loaded(protocol: str, place: Path, content: str) -> Catalogue:
    """The catalogue of a protocol, whose folder lies at `place` and has this content."""
    folder, anatomy = protocol_folder(protocol), anatomy_of(protocol)
    head = folder / "protocol.yaml"
    name, option_sets = _head(head, has_own=folder.parent != DATA)
    files = sorted(
        path
        for path in folder.glob("*.yaml")
        if path.name not in _NO_SUBTASKS and not is_housekeeping(path.name)
    )
    entries = [(path, entry) for path in files for entry in _entries(path)]
    subtasks = [_subtask(path, entry, option_sets) for path, entry in entries]
    if not subtasks:
        raise InputError(
            f"{folder}: has no subtasks; expected YAML files with lists of subtasks beside {head.name}"
        )
    check(subtasks, anatomy)
    words = folder / "lexicon.yaml"
    reported = [subtask.sequence for subtask in subtasks if subtask.answer_type == "report"]
    read = [head, *files, *([words] if reported else [])]
    subtask_of = {subtask.id: subtask for subtask in subtasks}
    lexicons = {
        sequence: load_lexicon(words, sequence, _fields(subtask_of, sequence)) for sequence in reported
    }
    digest = hashlib.sha256(b"\0".join(read_bytes(path) for path in read))
    points = _paper_points(folder, subtask_of, anatomy)
    return Catalogue(name, subtask_of, lexicons, digest.hexdigest(), anatomy, points)


def _paper_points(
    folder: Path, subtask_of: Mapping[str, Subtask], anatomy: Anatomy
) -> dict[str, tuple[str, ...]]:
    """Return the points of prompt style `paper`; a protocol of the heart without any has the shipped ones."""
    path = folder / _POINTS
    is_own = path.exists()
    if not is_own and not anatomy.is_heart:
        return {}
    path = path if is_own else DATA / HEART / _POINTS
    try:
        points = _POINTS_OF.validate_python(read_yaml(path))
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}; expected a list of points by subtask") from None
    if unknown := sorted(points.keys() - subtask_of.keys()) if is_own else []:
        raise InputError(f"{path}: names {unknown[0]!r}; expected subtasks: {', '.join(subtask_of)}")
    return points


def _head(path: Path, *, has_own: bool) -> tuple[str, Mapping[str, Any]]:
    """Read the name and shared option sets of a protocol; a user's own must not take a shipped name."""
    head = read_yaml(path)
    name = head.get("protocol")
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
    if unknown := sorted(head.keys() - {"protocol", "option_sets"}, key=str):
        raise InputError(f"{path}: unknown key {unknown[0]!r}; expected only option_sets, protocol")
    if not isinstance(option_sets, dict):
        raise InputError(f"{path}: option_sets is {option_sets!r}; expected lists of options by name")
    return name, option_sets


def _fields(subtasks: Mapping[str, Subtask], sequence: str) -> dict[str, frozenset[str]]:
    """Return the option texts of every field in the reports of a sequence."""
    return {
        subtasks[name].field: frozenset(option.text for option in subtasks[name].options)
        for form in subtasks.values()
        if form.sequence == sequence
        for name in form.report_fields
    }


def _entries(path: Path) -> list[dict[str, Any]]:
    tree = read_yaml(path)
    entries = tree.get("subtasks")
    if (
        set(tree) != {"subtasks"}
        or not isinstance(entries, list)
        or not all(isinstance(e, dict) for e in entries)
    ):
        raise InputError(f"{path}: must hold exactly one key 'subtasks', a list of subtasks")
    return entries


def _subtask(path: Path, entry: dict[str, Any], option_sets: Mapping[str, Any]) -> Subtask:
    entry = dict(entry)
    options = entry.get("options")
    if isinstance(options, str):
        if options not in option_sets:
            raise InputError(
                f"{path}: {entry.get('id')}: no option set {options!r}; "
                f"protocol.yaml has {sorted(option_sets)}"
            )
        entry["options"] = option_sets[options]
    if isinstance(entry.get("route"), dict):
        entry["route"] = tuple(entry["route"].items())
    try:
        return _SUBTASK.validate_python(entry)
    except ValidationError as error:
        raise InputError(f"{path}: {entry.get('id')}: {describe(error)}") from None


def check(subtasks: list[Subtask], anatomy: Anatomy | None = None) -> None:
    """Raise InputError for contradictory subtasks, naming the first; by default they are about the heart."""
    subtask_of: dict[str, Subtask] = {}
    for subtask in subtasks:
        if subtask.id in subtask_of:
            raise InputError(f"subtask {subtask.id} stands twice in the catalogue; ids must be unique")
        subtask_of[subtask.id] = subtask
    for subtask in subtasks:
        for problem in _problems(subtask, subtask_of, anatomy or heart()):
            raise InputError(f"subtask {subtask.id}: {problem}")


def _problems(subtask: Subtask, subtask_of: Mapping[str, Subtask], anatomy: Anatomy) -> list[str]:
    report = subtask.answer_type == "report"
    rules = [
        (not subtask.route, "route is empty; name at least one view"),
        (
            any(weight <= 0 for _, weight in subtask.route),
            f"weights must be positive: {dict(subtask.route)}",
        ),
        (len(set(dict(subtask.route))) != len(subtask.route), "route names a view twice"),
        (len(set(subtask.keys)) != len(subtask.keys), f"option keys {list(subtask.keys)} are not unique"),
        (not report and len(subtask.options) < 2, "needs at least two options"),
        (not report and len(subtask.checklist) not in {0, 5}, "a checklist has five items"),
        (
            report == (not subtask.report_fields),
            "every report, and no other subtask, has report_fields",
        ),
        (report and bool(subtask.options), "a report has no options"),
        (
            not set(subtask.exclusive) <= set(subtask.keys),
            f"exclusive {list(subtask.exclusive)} not in options",
        ),
        (
            bool(subtask.exclusive) and subtask.answer_type != "multi",
            "only multi-select has exclusive options",
        ),
        (bool(subtask.parent) != bool(subtask.parent_answers), "parent and parent_answers go together"),
    ]
    problems = [text for wrong, text in rules if wrong] + _unknown_views(subtask, anatomy)
    problems += option_problems([(option.key, option.text) for option in subtask.options])
    problems += wording_problems(subtask.question, subtask.wordings, [o.text for o in subtask.options])
    problems += [f"report field {name!r} unknown" for name in subtask.report_fields if name not in subtask_of]
    if subtask.parent:
        problems += _parent_problems(subtask, subtask_of.get(subtask.parent))
    return problems


def _unknown_views(subtask: Subtask, anatomy: Anatomy) -> list[str]:
    """Return problems of sequences and views that no study can have; their question would never be asked."""
    views = {*anatomy.volume_ids, CASE_IMAGES}
    legal = {"route": views | anatomy.pools.keys(), "unreadable_without": views}
    views_named = {
        "route": [name for name, _ in subtask.route],
        "unreadable_without": subtask.unreadable_without,
    }
    problems = [
        f"{field} names {name!r}; expected of {', '.join(sorted(legal[field]))}"
        for field, names in views_named.items()
        for name in names
        if name not in legal[field]
    ]
    legal_sequences = (*anatomy.sequences, "multi", CASE_IMAGES, PICTURE)
    if subtask.sequence not in legal_sequences:
        problems.append(f"sequence is {subtask.sequence!r}; expected one of {', '.join(legal_sequences)}")
    return problems


def _parent_problems(subtask: Subtask, parent: Subtask | None) -> list[str]:
    if parent is None:
        return [f"parent {subtask.parent!r} is not in the catalogue"]
    if parent.parent or parent is subtask:
        return [f"parent {parent.id} is conditional itself; a parent must be asked of every study"]
    if not set(subtask.parent_answers) <= set(parent.keys):
        return [f"parent_answers {list(subtask.parent_answers)} are not options of {parent.id}"]
    return []


# subtasks that ask whether anything is abnormal; the first option means no (8.4, conservatism)
GATES = frozenset({"C02", "C06", "L01", "P01", "T01"})
