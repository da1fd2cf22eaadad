"""The words of a command, `name=value`, read into the fields of a Spec."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.suggest import nearest_first
from cardiolens.config.base import Spec, describe

_Words = TypeVar("_Words", bound=Spec)


def read_words(kind: type[_Words], words: Sequence[str]) -> _Words:
    """The words of a command as its Spec, each given once.

    Raises InputError for a word that is no `name=value`, stands twice, is unknown or missing, has no value,
    or has one that its field does not take.
    """
    values: dict[str, str] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise InputError(f"{word!r}: expected name=value; give {_usage(kind)}")
        if name not in kind.model_fields:
            nearest = nearest_first(name, list(kind.model_fields))
            raise InputError(f"{name}=: no word of this command; choose from {', '.join(nearest)}")
        if name in values:
            raise InputError(f"{name}=: stands twice, as {values[name]!r} and {value!r}; give it once")
        if not value:
            raise InputError(f"{name}=: has no value; give {_usage(kind)}")
        values[name] = value
    lacking = [
        name for name, field in kind.model_fields.items() if field.is_required() and name not in values
    ]
    if lacking:
        raise InputError(f"{lacking[0]}= is not given; give {_usage(kind)}")
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise InputError(describe(error)) from None


def _usage(kind: type[Spec]) -> str:
    """All words of a command, those that may be left out in brackets."""
    fields = kind.model_fields.items()
    return " ".join(f"{name}=..." if field.is_required() else f"[{name}=...]" for name, field in fields)
