"""A JSON file that is a list of records, each with its place for messages."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json


@dataclass(frozen=True, slots=True)
class Located:
    """One record, its place in its file, and what is wrong with it as a whole."""

    where: str
    record: Mapping[str, Any]
    error: InputError | None = None

    def failing(self, error: InputError) -> "Located":
        """Return the record with an error."""
        return replace(self, error=error)


def listed_records(path: Path) -> Iterator[Located]:
    """Yield the records of a file, with an error for one that is none; InputError if it is no JSON list."""
    try:
        entries = read_json(path)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as JSON ({error}); download it anew") from None
    if not isinstance(entries, list) or not entries:
        kind = "an empty list" if entries == [] else type(entries).__name__
        raise InputError(f"{path}: is {kind}; expected a list of records; download it anew")
    for number, entry in enumerate(entries, start=1):
        where = f"{path}, record {number}"
        if isinstance(entry, dict):
            yield Located(where, entry)
        else:
            yield Located(where, {}, InputError(f"is {type(entry).__name__}; expected an object"))
