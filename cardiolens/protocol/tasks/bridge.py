"""The bridge between two protocols: what the one asks where the other asks a field."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Literal

from pydantic import ConfigDict, TypeAdapter, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.config.base import describe
from cardiolens.protocol.tasks.data_files import BRIDGE_NAME
from cardiolens.study.protocol_folder import DATA, read_yaml

FROM, TO = "authors-1", "openprotocol-1"


@dataclass(frozen=True)
class Counterpart:
    """The subtask of the other protocol that asks after a field, and how much of it."""

    asks: Literal["same", "more", "less", "partly", "nothing"]
    note: str
    subtask: str | None = None

    __pydantic_config__ = ConfigDict(extra="forbid")


_COUNTERPARTS = TypeAdapter(dict[str, Counterpart])


@cache
def counterparts() -> Mapping[str, Counterpart]:
    """Return what `openprotocol-1` asks in place of each field of `authors-1`."""
    path = DATA / FROM / BRIDGE_NAME
    try:
        return _COUNTERPARTS.validate_python(read_yaml(path))
    except ValidationError as error:
        raise InputError(f"{path}: {describe(error)}") from None
