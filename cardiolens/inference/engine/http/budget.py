"""Cap the tokens that requests to a server may cost."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.config.http import HttpSpec

NAME = "spent"
_LINE = re.compile(rb"(\d{20}) prompt and (\d{20}) output tokens\n")

Tokens = tuple[int, int]
"""Prompt and output tokens."""


class Ledger:
    """The open ledger of one model; OSError if the file system cannot write or lock the file.

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
        """Return the tokens spent by all sweeps so far."""
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


"""Prompt and output tokens."""


class Account(Protocol):
    """The tokens spent on a model, by this run and others."""

    def add(self, spent: Tokens) -> None:
        """Add the tokens of one reply."""

    def total(self) -> Tokens:
        """Return the tokens spent so far."""


class OwnAccount:
    """The tokens spent by this run and before it, without other concurrent runs."""

    def __init__(self, before: Tokens = (0, 0)) -> None:
        self._total = before

    def add(self, spent: Tokens) -> None:
        self._total = (self._total[0] + spent[0], self._total[1] + spent[1])

    def total(self) -> Tokens:
        return self._total


class SpendingCap:
    """The tokens spent on a model, checked against its cap: prompt and output tokens that replies report."""

    def __init__(self, http: HttpSpec, account: Account) -> None:
        self._http = http
        self._account = account

    def spend(self, prompt_tokens: int, output_tokens: int) -> None:
        """Count the tokens of one reply."""
        self._account.add((prompt_tokens, output_tokens))

    @property
    def tokens(self) -> int:
        """Prompt and output tokens spent so far."""
        return sum(self._account.total())

    def reached(self) -> str | None:
        """Return a message that names the cap if it is reached; else None."""
        most = self._http.max_tokens_total
        if most is not None and self.tokens >= most:
            return f"max_tokens_total {most:,} is reached ({self.tokens:,} tokens)"
        return None
