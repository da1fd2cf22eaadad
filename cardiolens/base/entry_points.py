"""Parts of other packages: found by their entry points, named with their package's version, loaded on use.

A word such as `edges.ends@1.2` names the entry point `ends` of version 1.2 of the package `edges`. Without a
version it means the installed one, which is then written into the word: a run says what it used. Finding a
part reads its package's metadata alone; none of its code runs before a sweep or an import that names it.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import Distribution, EntryPoint, distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cardiolens.base.digest import digest_of, digest_of_tree, sha256_of
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phrasing import choices
from cardiolens.base.sanitize import one_line

GROUPS = ("selectors", "engines", "report_metrics", "controls", "layouts", "readers")
_PREFIX = "cardiolens."  # of a group in a package's metadata
_WORD = re.compile(
    r"(?P<package>[a-z0-9]+(?:-[a-z0-9]+)*)\.(?P<name>[a-z][a-z0-9_]*)(?:@(?P<version>[A-Za-z0-9.+!_-]+))?"
)
_FORM = "package.name or package.name@version, in small letters, e.g. edges.ends@1.2"


class PluginError(RunError):
    """What a part of another package raised, or did against its interface; the message names the part."""


@dataclass(frozen=True, slots=True)
class Plugin:
    """One installed part."""

    group: str
    package: str  # normalised, e.g. my-edges
    name: str
    version: str
    entry_point: EntryPoint

    @property
    def word(self) -> str:
        """What a configuration calls the part."""
        return f"{self.package}.{self.name}@{self.version}"


@cache
def installed(group: str) -> Mapping[str, Plugin]:
    """Return the parts of a group by their words without version; of a package on the path twice, the first.

    InputError if a package gives one name to two parts, or a name that no word can hold.
    """
    plugins: dict[str, Plugin] = {}
    packages: set[str] = set()
    for distribution in distributions():
        entries = [entry for entry in distribution.entry_points if entry.group == f"{_PREFIX}{group}"]
        package = _package(distribution)
        if not entries or package in packages:
            continue
        packages.add(package)
        for entry in entries:
            key = f"{package}.{entry.name}"
            if not _WORD.fullmatch(f"{key}@{distribution.version}"):
                raise InputError(
                    f"package {one_line(package, 60)}: entry point {entry.name!r} of {_PREFIX}{group} is no "
                    "name; its maker must give it small letters, digits and _, beginning with a letter"
                )
            if key in plugins:
                raise InputError(
                    f"package {package}: has two entry points {entry.name!r} in {_PREFIX}{group}; its maker "
                    "must rename one"
                )
            plugins[key] = Plugin(group, package, entry.name, distribution.version, entry)
    return plugins


def is_word(value: object) -> bool:
    """Return whether a value names a part of another package, well or badly: names of ours have no dot."""
    return isinstance(value, str) and "." in value


def pinned(group: str, word: str) -> str:
    """Return a word with its version: the installed one where it has none; ValueError if that is unknown.

    A word with a version is only read: configurations of old runs name parts that are no longer installed.
    """
    match = _WORD.fullmatch(word)
    if match is None:
        raise ValueError(f"names no part of another package; write {_FORM}")
    return word if match["version"] else _plugin(group, word).word


def find(group: str, word: str) -> Plugin:
    """Return the installed part that a word with version names; InputError if it is not the one installed."""
    try:
        plugin = _plugin(group, word.partition("@")[0])
    except ValueError as error:
        raise InputError(f"{word}: {error}") from None
    if plugin.word != word:
        raise InputError(
            f"{word}: version {plugin.version} of {plugin.package} is installed; install "
            f"{plugin.package}=={word.partition('@')[2]}, or name {plugin.word}"
        )
    return plugin


def _plugin(group: str, key: str) -> Plugin:
    plugins = installed(group)
    if key not in plugins:
        legal = choices(key, plugins) if plugins else "none is installed"
        raise ValueError(
            f"no installed package has this entry point of {_PREFIX}{group}; {legal} (docs/guides/extend.md)"
        )
    return plugins[key]


def load(group: str, word: str) -> Callable[..., Any]:
    """Import the factory that a word names; PluginError if that fails or it cannot be called."""
    plugin = find(group, word)
    with blamed(word):
        factory = plugin.entry_point.load()
    if not callable(factory):
        raise PluginError(
            f"plugin {word}: {plugin.entry_point.value} cannot be called; its maker must correct it"
        )
    loaded: Callable[..., Any] = factory
    return loaded


def make(group: str, word: str, interface: type, *arguments: object, **options: object) -> Any:
    """Make a part by its factory, and check that it has the methods of its interface.

    InputError if the options are not those of the factory, PluginError for all that is wrong with the part.
    """
    factory = load(group, word)
    check_options(word, factory, len(arguments), options)
    with blamed(word):
        made = factory(*arguments, **options)
        problems = [*_departures(made, interface)]
    for problem in problems:
        raise PluginError(f"plugin {word}: {problem}; its maker must follow {interface.__name__}")
    return made


def check_options(word: str, factory: Callable[..., Any], n_arguments: int, options: Iterable[str]) -> None:
    """Raise InputError, with the legal options, if a factory does not take the given ones."""
    with blamed(word):
        signature = inspect.signature(factory)
    named = list(options)
    try:
        signature.bind(*range(n_arguments), **dict.fromkeys(named))
    except TypeError as error:
        legal = ", ".join(map(str, [*signature.parameters.values()][n_arguments:])) or "no options"
        raise InputError(f"plugin {word}: options {sorted(named)}: {error}; it takes {legal}") from None


def code_of(group: str, word: str) -> str:
    """Return 32 hex digits of a part's code: the top package or module that its entry point lies in.

    A version alone does not tell what an editable installation was when it ran.
    """
    plugin = find(group, word)
    top = plugin.entry_point.module.partition(".")[0]
    with blamed(word):
        found_at = find_spec(top)
    if found_at is None:
        raise PluginError(f"plugin {word}: its module {top} is not installed; install {plugin.package} again")
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
        raise PluginError(f"plugin {word}: {reason_of(error)}") from error


def reason_of(error: BaseException) -> str:
    """Return the kind of an error and what it says, on one line."""
    return one_line(f"{type(error).__name__}: {error}")


def _departures(made: object, interface: type) -> Iterator[str]:
    """Yield what an object lacks of an interface."""
    for name in (name for name in (*vars(interface), *_fields(interface)) if not name.startswith("_")):
        declared = vars(interface).get(name)
        has = getattr(made, name, None)
        if has is None:
            yield f"has no {name}"
        elif inspect.isfunction(declared):
            yield from _call_departures(name, declared, has)


def _fields(interface: type) -> Iterable[str]:
    return inspect.get_annotations(interface)


def _call_departures(name: str, declared: Callable[..., Any], has: object) -> Iterator[str]:
    wanted = [*inspect.signature(declared).parameters.values()][1:]  # without self
    if not callable(has):
        yield f"has a {name} that cannot be called"
        return
    positional = [each.name for each in wanted if each.kind is not each.KEYWORD_ONLY]
    named = [each.name for each in wanted if each.kind is each.KEYWORD_ONLY]
    try:
        inspect.signature(has).bind(*positional, **dict.fromkeys(named))
    except (TypeError, ValueError) as error:
        yield f"has a {name} that does not take ({', '.join([*positional, *named])}): {error}"
    if inspect.iscoroutinefunction(declared) != inspect.iscoroutinefunction(has):
        yield f"has a {name} that is {'no' if inspect.iscoroutinefunction(declared) else 'a'} coroutine"


def _package(distribution: Distribution) -> str:
    """Return the name of a package as registries normalise it: My_Edges is my-edges."""
    return re.sub(r"[-_.]+", "-", str(distribution.metadata["Name"] or "")).lower()
