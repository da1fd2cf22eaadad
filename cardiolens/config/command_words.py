"""The words of a command, `name=value`, read into the fields of a Spec."""

import re
import shlex
from collections.abc import Sequence
from typing import TypeVar

from pydantic import BeforeValidator

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec, unknown_key, validated
from cardiolens.config.sweep import SweepSpec

# first names of the words that describe a sweep
SWEEP_OPTIONS = ("experiment", "protocol", *SweepSpec.model_fields)
MODEL_OPTIONS = ("model", "cluster", "stream")  # of a model that reads or judges text

_Words = TypeVar("_Words", bound=Spec)
_ENTRY = re.compile(r"""\s*(?:'[^']*'|"[^"]*")\s*(?=,|$)|[^,]+""")  # a path with a comma stands in quotes


def _listed(value: object) -> object:
    return listed(value) if isinstance(value, str) else value


def listed(value: str) -> list[str]:
    """Split `[a,b]` into its entries."""
    inner = value[1:-1] if value.startswith("[") and value.endswith("]") else value
    entries = [entry.strip() for entry in _ENTRY.findall(inner)]
    return [entry[1:-1] if entry[:1] in ("'", '"') else entry for entry in entries if entry]


Listed = BeforeValidator(_listed)  # marks a tuple that a word gives as [a,b]


def pairs_of(words: Sequence[str]) -> list[tuple[str, str]]:
    """Divide each word into name and value; InputError for one that is not `name=value`."""
    pairs = []
    for place, word in enumerate(words):
        name, equals, value = word.partition("=")
        if not equals or not name.lstrip("+"):
            before = words[place - 1] if place else ""
            joined = shlex.quote(f"{before} {word}")  # a space may have divided them
            hint = f"; if it belongs to the word before it, write {joined}" if "=" in before else ""
            raise InputError(f"{not_a_word(word)}{hint}")
        if not value:
            raise InputError(f"{name}=: has no value; give one, or leave the word out")
        pairs.append((name, value))
    return pairs


def not_a_word(word: str) -> str:
    """Return the message for a word that cannot be read."""
    return f"{word!r} is not of the form name=value; quote lists in the shell, e.g. 'budget=[8,16]'"


def read_words(kind: type[_Words], words: Sequence[str]) -> _Words:
    """Read the words of a command, each given at most once, into a Spec.

    InputError for a word that is not `name=value`, is given twice, is unknown or missing, or has a value that
    its field does not take.
    """
    spec, _ = split_words(kind, words, ())
    return spec


def split_words(
    kind: type[_Words], words: Sequence[str], options: Sequence[str] = SWEEP_OPTIONS
) -> tuple[_Words, list[str]]:
    """Read the own words of a command, and return them with those that describe a sweep, which it also takes.

    `options` are the first names of the others, e.g. `dataset` of `dataset.studies=...`. InputError as for
    `read_words`; the values of the others are not checked here.
    """
    fields = {field.alias or name: field.is_required() for name, field in kind.model_fields.items()}
    own_values: dict[str, str] = {}
    sweep_values: dict[str, str] = {}
    for word, value in pairs_of(words):
        name = word.lstrip("+")
        is_other = name.partition(".")[0] in options
        if word not in fields and not is_other:
            raise InputError(unknown_key(word, [*fields, *options]))
        values = own_values if word in fields else sweep_values
        if name in values:
            raise InputError(f"{name}=: stands twice, as {values[name]!r} and {value!r}; give it once")
        values[name] = value
    missing = [name for name, is_required in fields.items() if is_required and name not in own_values]
    if missing:
        raise InputError(f"{missing[0]}= is not given; give {' '.join(f'{name}=...' for name in missing)}")
    return validated(kind, own_values), [f"{name}={value}" for name, value in sweep_values.items()]
