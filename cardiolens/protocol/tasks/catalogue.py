"""The catalogue of subtasks, loaded from data files and checked."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.base import describe
from cardiolens.config.dataset import JOIN
from cardiolens.protocol.tasks.data_files import LEXICON_NAME, POINTS_NAME, Entry, read_data_files
from cardiolens.protocol.tasks.legal import option_problems, reserved_in
from cardiolens.protocol.tasks.lexicon import Lexicon, load_lexicon
from cardiolens.protocol.tasks.quantity import Quantity
from cardiolens.study.anatomy import (
    CASE_IMAGES,
    DATA,
    HEART,
    MOST_BYTES,
    PICTURE,
    Anatomy,
    anatomy_of,
    heart,
    lineage,
    protocol_folder,
    protocols_of,
    read_yaml,
)

AnswerType = Literal["single", "ordinal", "multi", "report", "number", "ranking"]
OPEN: frozenset[AnswerType] = frozenset({"report", "number", "ranking"})  # without options
_STRICT = ConfigDict(extra="forbid")


@dataclass(frozen=True)
class Option:
    """One answer option; correct if the truth has one of `values`, or nothing at all if it is `none`."""

    key: Annotated[str, Field(pattern="^[A-Z]$")]
    text: str
    values: tuple[str, ...] = ()
    normal: bool = False
    none: bool = False

    __pydantic_config__ = _STRICT


@dataclass(frozen=True)
class Subtask:
    """One kind of question: wording, options, views shown, and the condition for asking.

    `route` holds volumes or pools of the anatomy and their weights, in priority order. A conditional subtask
    is asked if the true answer of its parent is one of `parent_answers`. At least one view of
    `unreadable_without` must be present; with `only_routed`, no other view than the routed ones is shown.
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
    only_routed: bool = False
    temporal: bool = False  # answering requires motion
    checklist: tuple[str, ...] = ()
    report_fields: tuple[str, ...] = ()  # of a report: subtasks that define its fields
    wordings: tuple[str, ...] = ()  # alternatives to `question`
    letters_first: bool = False  # the reply begins with its letters, as prompts of its protocol ask
    quantity: Quantity | None = None  # of a number
    ranks: int = 0  # names in a ranking, the likeliest first

    __pydantic_config__ = _STRICT

    def __hash__(self) -> int:
        return hash(self.id)  # as every request looks up the frames of its subtask

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
    """All subtasks of a protocol, or of joined ones, by id in the order of the data files."""

    protocol: str
    subtasks: Mapping[str, Subtask] = field(hash=False)
    definitions: Mapping[str, Subtask] = field(hash=False)  # with those that only define report fields
    lexicons: Mapping[str, Lexicon] = field(hash=False)  # of report text, by sequence
    sha256: str  # of the data files of subtasks, options and reports
    anatomy: Anatomy  # what studies hold and what stands in for what
    paper_points: Mapping[str, tuple[str, ...]] = field(hash=False)  # of prompt style `paper`, by subtask
    asked_by: Mapping[str, tuple[str, ...]] = field(hash=False)  # the protocols of each subtask
    loaded_from: Mapping[str, str] = field(hash=False)  # the name or folder of each protocol

    def __getitem__(self, subtask: str) -> Subtask:
        try:
            return self.subtasks[subtask]
        except KeyError:
            raise InputError(
                f"subtask {subtask!r} is not in protocol {self.protocol!r}; it has {', '.join(self.subtasks)}"
            ) from None

    def texts(self, sequence: str) -> dict[str, frozenset[str]]:
        """Return the option texts of every field in the reports of a sequence."""
        return _fields(self.definitions, sequence)

    def report_fields(self, form: Subtask) -> tuple[Subtask, ...]:
        """Return the subtasks that define the fields of a report."""
        return tuple(self.definitions[name] for name in form.report_fields)


def load_catalogue(protocol: str) -> Catalogue:
    """Load the catalogue of a protocol: a shipped one by name, or a user's own by its folder.

    A folder holds YAML files: `protocol.yaml` with the name and shared option sets, `lexicon.yaml` if there
    are report subtasks, `anatomy.yaml` unless they are about the heart, and others with lists of `subtasks`.
    `a+b` joins protocols: their subtasks together, each once. Files that did not change since the last call
    are not parsed again. InputError names the file, the subtask and the field that is wrong.
    """
    names = protocols_of(protocol)
    if len(names) > 1:
        return _joined(protocol, [load_catalogue(name) for name in names])
    folder = protocol_folder(protocol)
    content = hashlib.sha256()
    for path in sorted(folder.glob("*.yaml")):
        stored = b""
        with suppress(OSError):  # which the loading of the file then names
            stored = read_bytes(path, MOST_BYTES)
        content.update(f"{path.name}\0{len(stored)}\0".encode("utf-8", "surrogateescape") + stored)
    return _loaded(protocol, folder.absolute(), content.hexdigest())


@lru_cache(maxsize=8)
def _loaded(protocol: str, place: Path, content: str) -> Catalogue:
    """The catalogue of a protocol with its folder at `place` and this content."""
    folders, anatomy = lineage(protocol), anatomy_of(protocol)
    data = read_data_files(protocol)
    name = data.head.protocol
    subtasks = [_subtask(entry, none_option=data.head.none_option) for entry in data.entries]
    check(subtasks, anatomy)
    definitions = {subtask.id: subtask for subtask in subtasks}
    subtasks_asked = {name: subtask for name, subtask in definitions.items() if name in data.asked}
    words = _first_with(LEXICON_NAME, folders) or folders[0] / LEXICON_NAME
    reported = [subtask.sequence for subtask in subtasks if subtask.answer_type == "report"]
    read = [*data.files, *([words] if reported else [])]
    return Catalogue(
        protocol=name,
        subtasks=subtasks_asked,
        definitions=definitions,
        lexicons={
            sequence: load_lexicon(words, sequence, _fields(definitions, sequence)) for sequence in reported
        },
        sha256=hashlib.sha256(b"\0".join(read_bytes(path) for path in read)).hexdigest(),
        anatomy=anatomy,
        paper_points=_paper_points(folders, definitions, anatomy),
        asked_by=dict.fromkeys(subtasks_asked, (name,)),
        loaded_from={name: protocol},
    )


_SHARED = {  # what joined protocols may have in common, and what a message calls it
    "subtasks": "subtask",
    "definitions": "subtask",
    "lexicons": "lexicon of",
    "paper_points": "paper points of",
}


def _joined(protocol: str, parts: Sequence[Catalogue]) -> Catalogue:
    """Join catalogues; what several of them have must be the same in all."""
    shared: dict[str, dict[str, Any]] = {part_name: {} for part_name in _SHARED}
    asked_by: dict[str, tuple[str, ...]] = {}
    for part in parts:
        asked_by |= {name: (*asked_by.get(name, ()), part.protocol) for name in part.subtasks}
        for part_name, what in _SHARED.items():
            for name, item in getattr(part, part_name).items():
                if not _is_same(shared[part_name].setdefault(name, item), item):
                    raise InputError(
                        f"protocol {protocol!r}: {what} {name} differs between them; "
                        "ask each in its own sweep"
                    )
    return Catalogue(
        protocol=JOIN.join(part.protocol for part in parts),
        sha256=hashlib.sha256("+".join(part.sha256 for part in parts).encode()).hexdigest(),
        anatomy=anatomy_of(protocol),
        asked_by=asked_by,
        loaded_from={name: place for part in parts for name, place in part.loaded_from.items()},
        **shared,
    )


def _is_same(one: object, other: object) -> bool:
    """Whether two items are equal; a lexicon, which is hashed by identity, is compared by its fields."""
    return vars(one) == vars(other) if isinstance(one, Lexicon) else one == other


def _first_with(name: str, folders: Sequence[Path]) -> Path | None:
    return next((folder / name for folder in folders if (folder / name).exists()), None)


def _paper_points(
    folders: Sequence[Path], definitions: Mapping[str, Subtask], anatomy: Anatomy
) -> dict[str, tuple[str, ...]]:
    """Return the points of prompt style `paper`; a protocol of the heart without any has the shipped ones."""
    own_points = _first_with(POINTS_NAME, folders)
    if own_points is None and not anatomy.is_heart:
        return {}
    path = own_points or DATA / HEART / POINTS_NAME
    try:
        points = _POINTS_OF.validate_python(read_yaml(path))
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}; expected a list of points by subtask") from None
    if unknown := sorted(points.keys() - definitions.keys()) if own_points else []:
        raise InputError(f"{path}: names {unknown[0]!r}; expected subtasks: {', '.join(definitions)}")
    return points


def _fields(subtasks: Mapping[str, Subtask], sequence: str) -> dict[str, frozenset[str]]:
    """Return the option texts of every field in the reports of a sequence."""
    return {
        subtasks[name].field: frozenset(option.text for option in subtasks[name].options)
        for form in subtasks.values()
        if form.sequence == sequence
        for name in form.report_fields
    }


def _subtask(entry: Entry, *, none_option: bool) -> Subtask:
    content = dict(entry.content)
    if isinstance(content.get("route"), dict):
        content["route"] = tuple(content["route"].items())
    try:
        subtask = _SUBTASK.validate_python(content)
    except ValidationError as error:
        raise InputError(f"{entry.path}: {content.get('id')}: {describe(error)}") from None
    return _with_none(subtask, none_option=none_option)


def _with_none(subtask: Subtask, *, none_option: bool) -> Subtask:
    """Let the option `none` stand alone and answer where nothing is found; or leave it out, and gate."""
    alone = tuple(option.key for option in subtask.options if option.none)
    if not alone:
        return subtask
    if not none_option:
        return replace(subtask, options=tuple(option for option in subtask.options if not option.none))
    return replace(subtask, exclusive=(*subtask.exclusive, *alone), parent=None, parent_answers=())


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
    kind, keys, views = subtask.answer_type, list(subtask.keys), dict(subtask.route)
    is_open, words = kind in OPEN, (subtask.question, *subtask.wordings)
    rules = {
        "route is empty; name at least one view": not subtask.route,
        f"weights must be positive: {views}": any(weight <= 0 for weight in views.values()),
        "route names a view twice": len(views) != len(subtask.route),
        f"option keys {keys} do not ascend; letter the options in the order shown": keys != sorted(keys),
        f"a {kind} has no options": is_open and bool(keys),
        "a checklist has five items": kind != "report" and len(subtask.checklist) not in {0, 5},
        "every report, and no other subtask, has report_fields": (
            (kind == "report") != bool(subtask.report_fields)
        ),
        "every number, and no other subtask, has a quantity": (
            (kind == "number") != (subtask.quantity is not None)
        ),
        "every ranking, and no other, has ranks": (kind == "ranking") != (subtask.ranks > 0),
        "wordings repeat the question or each other; write each in different words": (
            len(set(words)) < len(words)
        ),
        f"exclusive {list(subtask.exclusive)} not in options": not set(subtask.exclusive) <= set(keys),
        "only multi-select has exclusive options": bool(subtask.exclusive) and kind != "multi",
        "parent and parent_answers go together": bool(subtask.parent) != bool(subtask.parent_answers),
    }
    problems = [text for text, wrong in rules.items() if wrong] + _unknown_views(subtask, anatomy)
    problems += filter(None, [reserved_in("".join((*words, *subtask.checklist)))])
    if not is_open:
        options = [(option.key, option.text) for option in subtask.options]
        problems += option_problems(options, several=kind == "multi")
    problems += [f"report field {name!r} unknown" for name in subtask.report_fields if name not in subtask_of]
    return problems + (_parent_problems(subtask, subtask_of) if subtask.parent else [])


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


def _parent_problems(subtask: Subtask, subtask_of: Mapping[str, Subtask]) -> list[str]:
    parent = subtask_of.get(str(subtask.parent))
    if parent is None:
        return [f"parent {subtask.parent!r} is not in the catalogue"]
    if not set(subtask.parent_answers) <= set(parent.keys):
        return [f"parent_answers {list(subtask.parent_answers)} are not options of {parent.id}"]
    seen = [subtask.id]
    while parent is not None:
        if parent.id in seen:
            return [f"its parents {', '.join([*seen[1:], parent.id])} lead back to {parent.id}"]
        seen.append(parent.id)
        parent = subtask_of.get(parent.parent or "")
    return []


# subtasks that ask whether anything is abnormal; the first option means no
GATES = frozenset({"C02", "C06", "L01", "P01", "T01"})
