"""The words `run=outputs/...` and `runs=[outputs/...,outputs/...]`, which name existing runs."""

from collections.abc import Sequence
from pathlib import Path

from cardiolens.base.errors import InputError
from cardiolens.storage.permissions import follow
from cardiolens.storage.places import Run


def read_runs(argv: Sequence[str]) -> list[Run]:
    """The runs that `run=outputs/...` or `runs=[outputs/...,outputs/...]` names, else InputError."""
    match [word.partition("=") for word in argv]:
        case [("runs", "=", listed)] if listed.startswith("[") and listed.endswith("]"):
            folders = [folder.strip() for folder in listed[1:-1].split(",") if folder.strip()]
            if len(set(folders)) < max(2, len(folders)):
                raise InputError(f"runs={listed}: give two runs or more, each once")
            return [open_run("runs", Path(folder)) for folder in folders]
        case _:
            return [read_run(argv)]


def read_run(argv: Sequence[str]) -> Run:
    """The existing run that `run=outputs/...` names; InputError for other words."""
    match [word.partition("=") for word in argv]:
        case [("run", "=", folder)]:
            return open_run("run", Path(folder))
        case _:
            raise InputError(f"{' '.join(argv) or 'no words'}: give exactly run=outputs/<name of the run>")


def open_run(word: str, folder: Path) -> Run:
    """The existing run in a folder that a word named; files are written as private as the run's own."""
    if not folder.is_dir():
        raise InputError(f"{word}={folder}: no such folder; give the path that a sweep's last line named")
    follow(folder)
    return Run(folder)
