"""The words of a command, `name=value`, read into the fields of a Spec."""

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString, Sweep
from hydra.errors import HydraException
from pydantic import BeforeValidator, Field

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices
from cardiolens.config.base import GivenPath, Spec, annotation_at, validated
from cardiolens.config.conf_names import quoted
from cardiolens.config.sweep import SweepSpec

# first names of the words that describe a sweep
SWEEP_OPTIONS = ("experiment", "protocol", *SweepSpec.model_fields)
MODEL_OPTIONS = ("model", "cluster", "stream")  # of a model that reads or judges text

_Words = TypeVar("_Words", bound=Spec)


def _listed(value: object) -> object:
    return listed(value) if isinstance(value, str) else value


def listed(value: str) -> list[str]:
    """Split `[a,b]` into its entries."""
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    entries = [entry.strip() for entry in _ENTRY.findall(inner)]
    return [entry[1:-1] if entry[:1] in ("'", '"') else entry for entry in entries if entry]


_ENTRY = re.compile(r"""\s*(?:'[^']*'|"[^"]*")\s*(?=,|$)|[^,]+""")  # a path with a comma stands in quotes


Listed = BeforeValidator(_listed)  # marks a tuple that a word gives as [a,b]


class VerifyWords(Spec):
    """The words of the command that compares a release with its index."""

    verify: GivenPath
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None  # of its release.json


def read_words(kind: type[_Words], words: Sequence[str]) -> _Words:
    """Read the words of a command, each given at most once, into a Spec.

    InputError for a word that is not `name=value`, is given twice, is unknown or missing, has no value, or
    has a value that its field does not take.
    """
    legal = _fields(kind)
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not legal:
            raise InputError(f"{word!r}: this command takes no words; leave it out")
        if not equals:
            raise InputError(f"{word!r}: expected name=value; give {_usage(kind)}{joined_hint(word, words)}")
        if name not in legal:
            raise unknown_word(name, legal)
        if name in values:
            raise InputError(f"{name}=: stands twice, as {values[name]!r} and {value!r}; give it once")
        if not value:
            raise InputError(f"{name}=: has no value; give {_usage(kind)}")
        values[name] = value
    missing = [name for name, required in legal.items() if required and name not in values]
    if missing:
        raise InputError(f"{missing[0]}= is not given; give {_usage(kind)}")
    return validated(kind, values)


def joined_hint(word: str, words: Sequence[str]) -> str:
    """Say how to write a word and the one before it as one, since a space may have divided them."""
    at = list(words).index(word)
    if not at or "=" not in words[at - 1]:
        return ""
    return f"; if it belongs to the word before it, write {shlex.quote(f'{words[at - 1]} {word}')}"


def split_words(
    kind: type[_Words], words: Sequence[str], options: Sequence[str] = SWEEP_OPTIONS
) -> tuple[_Words, list[str]]:
    """Read the own words of a command, and return them with the words for Hydra, which it also takes.

    `options` are the first names of words for Hydra, e.g. `dataset` of `++dataset.studies=...`. InputError
    as for `read_words`; values of words for Hydra are not checked here.
    """
    own: list[str] = []
    configuring: list[str] = []
    for word in words:
        name, equals, _ = word.partition("=")
        first = name.lstrip("+~").partition(".")[0].partition("@")[0]
        if name in _fields(kind) or not (equals or name.startswith("~")):
            own.append(word)
        elif first in options:
            configuring.append(word)
        else:
            raise unknown_word(name, [*_fields(kind), *options])
    return read_words(kind, own), configuring


def check_once(words: Iterable[str]) -> None:
    """Raise InputError for a word for Hydra that is given twice: Hydra would take the last one silently.

    Words of a sweep are not checked: scripts add their own after a list of common ones.
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals or word.startswith("~"):
            continue
        name = name.lstrip("+")
        if name in values:
            raise InputError(f"{name}=: stands twice, as {values[name]!r} and {value!r}; give it once")
        values[name] = value


def verify_words(words: Sequence[str]) -> VerifyWords | None:
    """Read `verify=FOLDER`, beside which only `sha256=` may stand; None if it is absent."""
    if not any(word.startswith("verify=") for word in words):
        return None
    own = _fields(VerifyWords)
    if others := [word for word in words if word.partition("=")[0] not in own]:
        raise InputError(f"{others[0]}: stands beside verify=; give verify=... alone")
    return read_words(VerifyWords, words)


def unknown_word(name: str, legal: Iterable[str]) -> InputError:
    """The error for an unknown word; it says what may have been meant."""
    return InputError(f"{name}=: no word of this command; {choices(name, legal)}")


def _fields(kind: type[Spec]) -> dict[str, bool]:
    """The words of a Spec, and whether each is required."""
    return {field.alias or name: field.is_required() for name, field in kind.model_fields.items()}


def _usage(kind: type[Spec]) -> str:
    """All words of a command, the required ones first, the others in brackets."""
    fields = _fields(kind).items()
    required = [f"{name}=..." for name, is_required in fields if is_required]
    return " ".join([*required, *(f"[{name}=...]" for name, is_required in fields if not is_required)])


_INTERPOLATION = re.compile(r"\$\{[^{}]*\}")


def with_quoted_texts(words: Sequence[str]) -> list[str]:
    """Quote the values of texts and paths that Hydra would take for something else, e.g. `store=/a=b,c`.

    Values that Hydra reads as text stay: those with its own quotes or escapes, and interpolations.
    """
    return list(_quoted_texts(words))


def _quoted_texts(words: Sequence[str]) -> Iterator[str]:
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and not name.startswith("~"):
            raise InputError(f"{not_a_word(word)}{joined_hint(word, words)}")
        is_set = value not in ("", "null") and not name.startswith("~")
        annotation = annotation_at(SweepSpec, name.lstrip("+").split(".")) if name and is_set else None
        types = _text_types(annotation)
        if _lists_texts(annotation) and _read(word) is None:
            yield f"{name}=[{','.join(map(quoted, listed(value)))}]"
        elif not types or _stays(word, value, is_path=Path in types):
            yield word
        elif _INTERPOLATION.search(value):
            yield f"{name}={QuotedString(value, Quote.single).with_quotes()}"
        else:
            yield f"{name}={quoted(value)}"


def _read(word: str) -> Any:
    """Return what Hydra reads; None if it cannot."""
    try:
        return OverridesParser.create().parse_override(word).value()
    except HydraException:
        return None


def _stays(word: str, value: str, *, is_path: bool) -> bool:
    """Return whether Hydra's reading of a value is what was meant."""
    read = _read(word)
    if read is None or isinstance(read, Sweep):
        return False
    if isinstance(read, str):
        return read == value or "\\" in value or value[0] in "'\""
    return not is_path  # a number or a list, which a text is not


def not_a_word(word: str) -> str:
    """Return the message for a word that Hydra cannot read."""
    return f"{word!r} is not of the form name=value; quote lists in the shell, e.g. 'budget=[8,16]'"


def _lists_texts(annotation: Any) -> bool:
    """Return whether an option is a list of texts, e.g. `cluster.sbatch=[--account=mri,--mem=200G]`."""
    return get_origin(annotation) is tuple and bool(_text_types(get_args(annotation)[0]))


def _text_types(annotation: Any) -> set[Any]:
    """Return which of text and path an option takes; empty if it takes anything else too."""
    if get_origin(annotation) is Annotated:
        return _text_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        types = [_text_types(kind) for kind in get_args(annotation) if kind is not NoneType]
        return set().union(*types) if all(types) else set()
    return {annotation} & {str, Path} if isinstance(annotation, type) else set()
