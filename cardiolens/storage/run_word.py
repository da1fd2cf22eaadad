"""The words `run=outputs/...` and `runs=[outputs/...,outputs/...]`, which name existing runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import model_validator

from cardiolens.base.errors import InputError
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed, read_words
from cardiolens.storage.places import Run


class RunWord(Spec):
    """The words of a command on one run."""

    run: GivenPath  # the folder of the run
    store: GivenPath | None = None  # where the store of the run is now; None: where it was, or beside the run

    def open(self) -> Run:
        """Open the run; InputError if its folder does not exist."""
        return open_run("run", self.run, self.store)


class RunWords(Spec):
    """The words of a command on one run, or on several as one; exactly one of both is given."""

    run: GivenPath | None = None  # the folder of the run
    runs: Annotated[tuple[GivenPath, ...], Listed] | None = None  # in place of run: several, as one
    store: GivenPath | None = None  # where the store of the runs is now

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.run is None and self.runs is None:
            raise ValueError("run= is not given; give run=... or runs=[...,...]")
        if self.run is not None and self.runs is not None:
            raise ValueError("runs=: stands beside run=; give one of them")
        if self.runs is not None and len(set(self.runs)) < max(2, len(self.runs)):
            raise ValueError(f"runs=[{','.join(map(str, self.runs))}]: give two runs or more, each once")
        return self

    def open(self) -> list[Run]:
        """Open the runs; InputError if a folder does not exist."""
        if self.run is not None:
            return [open_run("run", self.run, self.store)]
        return [open_run("runs", folder, self.store) for folder in self.runs or ()]


def read_runs(argv: Sequence[str]) -> list[Run]:
    """Open the runs that `run=outputs/...` or `runs=[outputs/...,outputs/...]` names."""
    return read_words(RunWords, argv).open()


def read_run(argv: Sequence[str]) -> Run:
    """Open the run that `run=outputs/...` names."""
    return read_words(RunWord, argv).open()


def open_run(word: str, folder: Path, store: Path | None = None) -> Run:
    """Open the run in a folder that a word named; InputError if there is none.

    `store`: where the store of the run is now, if a word said so.
    """
    if not folder.is_dir():
        quotes = "; a path with a comma stands in quotes: \"runs=['a,b',c]\"" if word == "runs" else ""
        raise InputError(
            f"{word}={folder}: no such folder; give the path that a sweep's last line named{quotes}"
        )
    return Run(folder, store)
