"""The words of a command, `name=value`, read into the fields of a Spec."""

import re
import shlex
from collections.abc import Iterable, Sequence
from typing import TypeVar

from pydantic import BeforeValidator

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import choices
from cardiolens.config.base import Spec, validated
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


def read_words(kind: type[_Words], words: Sequence[str]) -> _Words:
    """Read the words of a command, each given at most once, into a Spec.

    InputError for a word that is not `name=value`, is given twice, is unknown or missing, has no value, or
    has a value that its field does not take.
    """
    legal = _fields(kind)
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"{word!r}: expected name=value; give {_usage(kind)}{joined_hint(word, words)}")
        if name not in legal:
            raise _unknown_word(name, legal)
        if not value:
            raise InputError(f"{name}=: has no value; give {_usage(kind)}")
    values = _values(words)
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
    as for `read_words`; of words for Hydra the values are not checked here.
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
            raise _unknown_word(name, [*_fields(kind), *options])
    _values(word for word in configuring if not word.startswith("~"))
    return read_words(kind, own), configuring


def _values(words: Iterable[str]) -> dict[str, str]:
    """Return the values of words by name; InputError for a word that is given twice."""
    values: dict[str, str] = {}
    for word in words:
        name, _, value = word.lstrip("+").partition("=")
        if name in values:
            raise InputError(f"{name}=: stands twice, as {values[name]!r} and {value!r}; give it once")
        values[name] = value
    return values


def _unknown_word(name: str, legal: Iterable[str]) -> InputError:
    """Return the error for an unknown word; it says what may have been meant."""
    return InputError(f"{name}=: no word of this command; {choices(name, legal)}")


def _fields(kind: type[Spec]) -> dict[str, bool]:
    """Return the words of a Spec, and whether each is required."""
    return {field.alias or name: field.is_required() for name, field in kind.model_fields.items()}


def _usage(kind: type[Spec]) -> str:
    """Return all words of a command, the required ones first, the others in brackets."""
    fields = _fields(kind).items()
    required = [f"{name}=..." for name, is_required in fields if is_required]
    return " ".join([*required, *(f"[{name}=...]" for name, is_required in fields if not is_required)])
