"""Decisions of people in a file: a JSON object per line, of one schema, written by one process at a time."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes
from cardiolens.config.base import Spec, describe
from cardiolens.storage.journal import MOST_BYTES, AppendedFile, whole_lines

_Line = TypeVar("_Line", bound=Spec)


class DecisionLog(Generic[_Line]):
    """A file locked for appending lines of one kind, which `read_decision_lines` reads.

    Raises InputError if another process appends to it or it cannot be written. `name` is what messages call
    the file, and `writer` the page that writes it.
    """

    def __init__(self, path: Path, schema: str, *, name: str, writer: str) -> None:
        self._schema = schema
        try:
            self._file = AppendedFile(path)
        except BlockingIOError:
            raise InputError(
                f"{name}: another {writer} writes to it; use its page, or end it first"
            ) from None
        except OSError as error:
            raise InputError(f"{name}: cannot be written ({error.strerror}); name another") from None

    def mend(self) -> None:
        """Remove a last line that a killed writer cut off; call it once the file has been read."""
        self._file.mend()

    def append(self, line: _Line) -> None:
        """Write a line; it is on the disk on return. OSError if the disk does not take it."""
        tree = {"schema": self._schema, **line.model_dump(mode="json", exclude_defaults=True)}
        self._file.append(json.dumps(tree, ensure_ascii=False).encode())

    def close(self) -> None:
        self._file.close()


def read_decision_lines(
    path: Path, kind: type[_Line], schema: str, *, name: str
) -> Iterator[tuple[int, _Line]]:
    """Line numbers and lines of a decision log; a last line that was cut off is left out.

    Raises OSError if the file cannot be read, InputError for a line that is not of the schema.
    """
    for number, text in whole_lines(read_bytes(path, MOST_BYTES)):
        try:
            tree = parse_json(text)
            if not isinstance(tree, dict) or tree.pop("schema", None) != schema:
                raise ValueError(f"is no decision; expected an object with schema {schema}")
            yield number, kind.model_validate(tree)
        except ValueError as error:
            reason = describe(error) if isinstance(error, ValidationError) else error
            raise InputError(f"{name}: line {number}: {reason}; correct or remove it") from None
