"""Parts of other packages: named in a configuration, found by their entry points, loaded on use.

A word such as `edges.ends@1.2` names the entry point `ends` of version 1.2 of the package `edges`
(guides/extend.md). Without a version it means the installed one, which is then written into the word, so that
every digest, arm and manifest says what was used.
"""

import inspect
import re
from collections.abc import Callable, Container, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, Tag

from cardiolens.base.digest import digest_of, digest_of_tree, sha256_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phrasing import choices
from cardiolens.base.sanitize import one_line

if TYPE_CHECKING:
    from cardiolens.config.sweep import SweepSpec

_PREFIX = "cardiolens."  # of a group in a package's metadata
_WORD = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.[a-z][a-z0-9_]*(?P<version>@[A-Za-z0-9.+!_-]+)?")
_FORM = "package.name or package.name@version, in small letters, e.g. edges.ends@1.2"
BUILT_IN, PLUGIN = "<built-in>", "<plugin>"  # tags of a name of this package, and of a word of another
READER = "reader:"  # before the word of a part that is a simulated reader


class PluginError(RunError):
    """What a part of another package raised, or did against its interface; the message names the part."""


class Plugin(NamedTuple):
    """One installed part."""

    entry_point: EntryPoint
    version: str


@cache
def installed(group: str) -> Mapping[str, Plugin]:
    """Return the parts of a group by their words without version; of two equal words, the first."""
    plugins: dict[str, Plugin] = {}
    for entry in entry_points(group=f"{_PREFIX}{group}"):
        if entry.dist is not None:
            package = re.sub(r"[-_.]+", "-", entry.dist.name).lower()  # as registries write it
            plugins.setdefault(f"{package}.{entry.name}", Plugin(entry, entry.dist.version))
    return plugins


def is_word(value: object) -> bool:
    """Return whether a value names a part of another package, well or badly: built-in names have no dot."""
    return isinstance(value, str) and "." in value


def pinned(group: str, word: str) -> str:
    """Return a word with its version: the installed one where it has none; InputError if that is unknown.

    A word with a version is only read: configurations of old runs name parts that are no longer installed.
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise InputError(f"{word}: names no part of another package; write {_FORM}")
    return word if match["version"] else f"{word}@{_find(group, word).version}"


def _find(group: str, word: str) -> Plugin:
    """Return the part that a word names; InputError if it is not installed, or in another version."""
    key, _, version = word.partition("@")
    plugins = installed(group)
    if key not in plugins:
        legal = choices(key, plugins) if plugins else "none is installed"
        raise InputError(
            f"{word}: no installed package has this entry point of {_PREFIX}{group}; {legal} "
            "(docs/guides/extend.md)"
        )
    plugin = plugins[key]
    if version not in ("", plugin.version):
        package = key.partition(".")[0]
        raise InputError(
            f"{word}: version {plugin.version} of {package} is installed; install {package}=={version}, or "
            f"name {key}@{plugin.version}"
        )
    return plugin


def load(group: str, word: str) -> Callable[..., Any]:
    """Import the factory that a word names; PluginError if that fails."""
    plugin = _find(group, word)
    with blamed(word):
        factory: Callable[..., Any] = plugin.entry_point.load()
    return factory


def make(group: str, word: str, interface: type, *arguments: object, **options: object) -> Any:
    """Make a part by its factory; PluginError if that fails, or if it lacks a member of its interface."""
    factory = load(group, word)
    with blamed(word):
        made = factory(*arguments, **options)
    for name in (*vars(interface), *inspect.get_annotations(interface)):
        if not name.startswith("_") and not hasattr(made, name):
            raise PluginError(f"plugin {word}: has no {name}; its maker must follow {interface.__name__}")
    return made


def code_of(group: str, word: str) -> str:
    """Return 32 hex digits of a part's code: the top package or module that its entry point lies in.

    The version of an editable installation does not identify its code.
    """
    top = _find(group, word).entry_point.module.partition(".")[0]
    with blamed(word):
        if (found_at := find_spec(top)) is None:
            raise ModuleNotFoundError(f"no module {top}; install its package again")
    if found_at.submodule_search_locations is None:
        return sha256_of(Path(str(found_at.origin)))[:32]
    return digest_of([digest_of_tree(Path(folder)) for folder in found_at.submodule_search_locations])


@contextmanager
def blamed(word: str) -> Iterator[None]:
    """Turn whatever a block of another package raises into PluginError, which names the part."""
    try:
        yield
    except PluginError:
        raise
    except (Exception, SystemExit) as error:
        raise PluginError(f"plugin {word}: {one_line(f'{type(error).__name__}: {error}')}") from error


Option = bool | int | float | str


def _pairs(value: object) -> object:
    return tuple(sorted(value.items())) if isinstance(value, Mapping) else value


Options = Annotated[tuple[tuple[str, Option], ...], BeforeValidator(_pairs), PlainSerializer(dict)]
"""Options of a part by name, written as a mapping; hashable, because arms are grouped by their selectors."""


def part_of(value: object) -> str:
    """Return the tag of a value: a name of this package, or the word of another."""
    return PLUGIN if is_word(value) else BUILT_IN


def _pinned_engine(value: str) -> str:
    prefix, colon, word = value.rpartition(":")
    if f"{prefix}{colon}" not in ("", READER):
        raise ValueError(f"begins with {prefix!r}; expected nothing before the word, or {READER}")
    return f"{prefix}{colon}{pinned('readers' if colon else 'engines', word)}"


PluginSelector = Annotated[str, AfterValidator(partial(pinned, "selectors")), Tag(PLUGIN)]
PluginControl = Annotated[str, AfterValidator(partial(pinned, "controls")), Tag(PLUGIN)]
PluginMetric = Annotated[str, AfterValidator(partial(pinned, "report_metrics")), Tag(PLUGIN)]
PluginEngine = Annotated[str, AfterValidator(_pinned_engine), Tag(PLUGIN)]


def plugins_of(spec: "SweepSpec", groups: Container[str] | None = None) -> tuple[tuple[str, str], ...]:
    """Return the parts of other packages that a sweep names, each once: a group of entry points and a word.

    All of them, or of some groups: selectors, controls, engines, readers, report_metrics.
    """
    places = [
        *(("selectors", selector.kind) for selector in spec.selector),
        *(("controls", control) for control in spec.control),
        *(engine_plugin(model.engine) for model in spec.model),
        *(("report_metrics", metric) for metric in spec.statistics.report_metrics),
    ]
    named = (place for place in places if is_word(place[1]) and (groups is None or place[0] in groups))
    return tuple(dict.fromkeys(named))


def engine_plugin(engine: str) -> tuple[str, str]:
    """Return the group and the word of an engine of another package."""
    return ("readers" if engine.startswith(READER) else "engines"), engine.removeprefix(READER)
