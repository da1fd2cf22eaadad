"""Words whose options are texts or paths: their values are taken as they are written."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Quote, QuotedString, Sweep
from hydra.errors import HydraException
from pydantic import BaseModel

from cardiolens.base.errors import InputError
from cardiolens.config.base import annotation_at
from cardiolens.config.command_words import joined_hint
from cardiolens.config.released import quoted

_INTERPOLATION = re.compile(r"\$\{[^{}]*\}")
_MULTIRUN = frozenset({"-m", "--multirun"})


def with_quoted_texts(kind: type[BaseModel], words: Sequence[str]) -> list[str]:
    """Quote the values of texts and paths that Hydra would take for something else, e.g. `out=/a=b,c`.

    Values that Hydra reads as text stay: those with its own quotes or escapes, and interpolations.
    """
    return list(_quoted_texts(kind, words, several=not _MULTIRUN.isdisjoint(words)))


def _quoted_texts(kind: type[BaseModel], words: Sequence[str], *, several: bool) -> Iterator[str]:
    for word in words:
        name, equals, value = word.partition("=")
        if not equals and not name.startswith(("-", "~")):
            raise InputError(f"{not_a_word(word)}{joined_hint(word, words)}")
        is_set = value not in ("", "null") and not name.startswith(("-", "~"))
        types = _text_types(annotation_at(kind, name.lstrip("+").split("."))) if name and is_set else set()
        if not types or _stays(word, value, is_path=Path in types, several=several):
            yield word
        elif _INTERPOLATION.search(value):
            yield f"{name}={QuotedString(value, Quote.single).with_quotes()}"
        else:
            yield f"{name}={quoted(value)}"


def _stays(word: str, value: str, *, is_path: bool, several: bool) -> bool:
    """Return whether Hydra's reading of a value is what was meant."""
    try:
        read = OverridesParser.create().parse_override(word).value()
    except HydraException:
        return False
    if isinstance(read, Sweep):
        return several
    if isinstance(read, str):
        return read == value or "\\" in value or value[0] in "'\""
    return not is_path  # a number or a list, which a text is not


def not_a_word(word: str) -> str:
    """Return the message for a word that Hydra cannot read."""
    return f"{word!r} is not of the form name=value; quote lists in the shell, e.g. 'budget=[8,16]'"


def _text_types(annotation: Any) -> set[Any]:
    """Return which of text and path an option takes; empty if it takes anything else too."""
    if get_origin(annotation) is Annotated:
        return _text_types(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        types = [_text_types(kind) for kind in get_args(annotation) if kind is not NoneType]
        return set().union(*types) if all(types) else set()
    return {annotation} & {str, Path} if isinstance(annotation, type) else set()
