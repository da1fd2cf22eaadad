"""The base of every configuration class: frozen, no unknown keys, errors that name the options."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails

from cardiolens.base.errors import InputError
from cardiolens.base.phrasing import nearest_first
from cardiolens.base.sanitize import one_line, without_credentials

Positive = Annotated[int, Field(gt=0)]
Auto = Literal["auto"]
Gib = Annotated[float, Field(gt=0)]
Seed = Annotated[int, Field(ge=0, lt=2**63)]


def _checked_path(value: object) -> object:
    if value == "":
        raise ValueError("is empty, which would mean the working directory; give a path (. for that folder)")
    if any(character < " " or character == "\x7f" for character in str(value)):
        raise ValueError("holds a line break or another control character; rename the folder")
    if any("\ud800" <= character <= "\udfff" for character in str(value)):
        raise ValueError("is not UTF-8, which tables need; rename the folder")
    is_below_home = isinstance(value, str) and (value == "~" or value.startswith("~/"))
    return os.path.expanduser(str(value)) if is_below_home else value  # a shell leaves `dataset.studies=~/x`


GivenPath = Annotated[Path, BeforeValidator(_checked_path)]  # `store=$STORE` is empty if STORE is unset


def unknown_key(name: str, legal: Iterable[str]) -> str:
    """Return the message for an option that there is not: the legal names, the nearest first."""
    return f"unknown key {name!r}; expected only {', '.join(nearest_first(name, legal)) or 'nothing'}"


class Spec(BaseModel):
    """A frozen part of the configuration; an unknown key is an error that lists the legal keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, protected_namespaces=())

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: object) -> object:
        if isinstance(value, Mapping):
            legal = {field.alias or name for name, field in cls.model_fields.items()}
            for key in sorted(value.keys() - legal, key=str):
                raise ValueError(unknown_key(str(key), sorted(legal)))
        return value

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for problem in self._problems():
            raise ValueError(problem)
        return self

    def _problems(self) -> Iterable[str]:
        """Yield what is wrong with the options together, each in words."""
        return ()


def annotation_at(root: type[BaseModel], path: Sequence[str]) -> Any:
    """Return the type of the option at a path below a root class; None where there is no such option."""
    annotation: Any = root
    for name in path:
        specs = [kind for kind in kinds_within(annotation) if issubclass(kind, BaseModel)]
        if not specs:
            return None
        fields = (spec.model_fields[name] for spec in specs if name in spec.model_fields)
        if (field := next(fields, None)) is not None:  # else it is the name of an entry, e.g. of a model
            annotation = field.annotation
    return annotation


def kinds_within(annotation: Any) -> Iterator[type]:
    """Yield the classes within a type such as tuple[ModelSpec, ...] or DatasetSpec | None."""
    if isinstance(annotation, type):
        yield annotation
    for inner in get_args(annotation):
        yield from kinds_within(inner)


_Model = TypeVar("_Model", bound=BaseModel)
_MAX_ERRORS = 5  # errors named in one message
_MAX_CHARACTERS = 80  # characters shown of a wrong value
_SECRET = frozenset(
    (
        *("patient_id", "report_id", "reference", "api_key_env"),
        *("base_url", "extra_body", "api_model", "api_aliases"),
    )
)  # options that may be, or contain, a secret


def validated(kind: type[_Model], tree: object, where: str = "", remedy: str = "") -> _Model:
    """Validate a tree as a model; InputError describes what is wrong, between `where` and `remedy`."""
    try:
        return kind.model_validate(tree)
    except ValidationError as error:
        raise InputError(f"{where}{describe(error)}{remedy}") from None


def describe(error: Exception) -> str:
    """Describe a validation error by option names; at most five problems are named.

    Values that may identify a patient, or be a key, are not repeated: messages go to logs and terminals.
    Other errors are described by their own words.
    """
    if not isinstance(error, ValidationError):
        return str(error)
    every = error.errors(include_url=False)
    primary = [item for item in every if not _follows(item, every)]
    lines = [_line(item) for item in primary[:_MAX_ERRORS]]
    more = [f"and {len(primary) - _MAX_ERRORS} more"] if len(primary) > _MAX_ERRORS else []
    return "; ".join(lines + more)


def _follows(item: ErrorDetails, every: Sequence[ErrorDetails]) -> bool:
    """Return whether a list is too short only because entries are wrong, which other errors report."""
    inside = (entry["loc"] for entry in every if len(entry["loc"]) > len(item["loc"]))
    return item["type"] == "too_short" and any(loc[: len(item["loc"])] == item["loc"] for loc in inside)


def _line(item: ErrorDetails) -> str:
    # tags of a union, in angle brackets, are no keys that anybody wrote
    where = ".".join(str(part) for part in item["loc"] if not str(part).startswith("<"))
    value = item["input"]
    entries = value if isinstance(value, list | tuple) else [value]
    secret = not _SECRET.isdisjoint(item["loc"]) or item["type"] in ("json_invalid", "extra_forbidden")
    is_shown = not secret and not any(isinstance(entry, dict | BaseModel) for entry in entries)
    message = re.sub(r"^Value error, | or instance of \w+", "", item["msg"])
    message += f", got {one_line(without_credentials(repr(value)), _MAX_CHARACTERS)}" if is_shown else ""
    return f"{where}: {message}" if where else message
