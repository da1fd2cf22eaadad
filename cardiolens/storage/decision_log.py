"""Decisions of people in a file: a JSON object per line, of one schema, written by one process at a time."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Generic, TypeVar

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes
from cardiolens.config.base import Spec, describe

MOST_BYTES = 256 << 20


_Line = TypeVar("_Line", bound=Spec)


class DecisionLog(Generic[_Line]):
    """A JSON Lines file locked for appending lines of one kind, which `read_decision_lines` reads.

    Raises InputError if another process appends to it or it cannot be written. `name` is what messages call
    the file, and `writer` the page that writes it.
    """

    def __init__(self, path: Path, schema: str, *, name: str, writer: str) -> None:
        self._schema, self._path = schema, path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = disk.open_log(path)
            try:
                disk.lock(self._file, path, wait=False)
                disk.sync(path.parent)  # a power failure could lose the name of a new file
            except OSError:
                self.close()
                raise
        except BlockingIOError:
            raise InputError(
                f"{name}: another {writer} writes to it; use its page, or end it first"
            ) from None
        except OSError as error:
            raise InputError(f"{name}: cannot be written ({error.strerror}); name another") from None

    def mend(self) -> None:
        """Truncate a last line that a killed writer cut off; end a complete one with its newline."""
        content = read_bytes(self._path, MOST_BYTES)
        tail = content.rpartition(b"\n")[2]
        if tail and _is_cut(tail):
            disk.truncate(self._file, len(content) - len(tail), self._path)
        elif tail:
            disk.append(self._file, b"\n", self._path)

    def append(self, line: _Line) -> None:
        """Write a line; it is on the disk on return. OSError if the disk does not take it."""
        tree = {"schema": self._schema, **line.model_dump(mode="json", exclude_defaults=True)}
        disk.append(self._file, json.dumps(tree, ensure_ascii=False).encode() + b"\n", self._path)

    def close(self) -> None:
        os.close(self._file)


def read_decision_lines(
    path: Path, kind: type[_Line], schema: str, *, name: str
) -> Iterator[tuple[int, _Line]]:
    """Line numbers and lines of a decision log; a last line that was cut off is left out.

    Raises OSError if the file cannot be read, InputError for a line that is not of the schema.
    """
    texts = read_bytes(path, MOST_BYTES).split(b"\n")
    for number, text in enumerate(texts, start=1):
        if not text.strip() or (number == len(texts) and _is_cut(text)):
            continue
        try:
            tree = parse_json(text)
            if not isinstance(tree, dict) or tree.pop("schema", None) != schema:
                raise ValueError(f"is no decision; expected an object with schema {schema}")
            yield number, kind.model_validate(tree)
        except ValueError as error:
            raise InputError(f"{name}: line {number}: {describe(error)}; correct or remove it") from None


def _is_cut(text: bytes) -> bool:
    """Whether a line is not JSON, e.g. because a kill cut it off."""
    try:
        parse_json(text)
    except ValueError:
        return True
    return False
