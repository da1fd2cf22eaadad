"""Ledger of the tokens that requests to a server cost, where a cap limits them."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.errors import InputError

NAME = "spent"
_LINE = re.compile(rb"(\d{20}) prompt and (\d{20}) output tokens\n")

Tokens = tuple[int, int]
"""Prompt and output tokens."""


class Ledger:
    """The tokens spent on a model by all sweeps; OSError if the file cannot be written or locked.

    `at_least` is the number of tokens of the completions in the store.
    """

    def __init__(self, completions: Path, at_least: Tokens) -> None:
        completions.mkdir(parents=True, exist_ok=True)
        self._path = completions / NAME
        self._file = disk.open_shared(self._path)
        with self._locked():
            totals = self._read() if os.fstat(self._file).st_size else (0, 0)
            self._write((max(totals[0], at_least[0]), max(totals[1], at_least[1])))

    def add(self, spent: Tokens) -> None:
        """Add the tokens of one reply."""
        with self._locked():
            prompt, output = self._read()
            self._write((prompt + spent[0], output + spent[1]))

    def total(self) -> Tokens:
        """Return the tokens spent so far."""
        with self._locked(shared=True):
            return self._read()

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    @contextmanager
    def _locked(self, *, shared: bool = False) -> Iterator[None]:
        disk.lock(self._file, self._path, shared=shared)
        try:
            yield
        finally:
            disk.unlock(self._file)

    def _read(self) -> Tokens:
        line = _LINE.fullmatch(os.pread(self._file, 256, 0))
        if line is None:
            raise InputError(
                f"{self._path}: is not the ledger of tokens that sweeps wrote; delete it, and the tokens of "
                "the completions beside it are counted"
            )
        return int(line[1]), int(line[2])

    def _write(self, tokens: Tokens) -> None:
        """Overwrite the line; its fixed length prevents half-written lines and needs no new disk space."""
        disk.overwrite(self._file, b"%020d prompt and %020d output tokens\n" % tokens, self._path)
