"""Where the files of a run are: its store, and the paths of its configuration.

A configuration keeps its paths as they were given, because the name of the run is a digest of them. The
folder that they are relative to is recorded when the run is made. A run that was moved or copied together
with its store leads to the store beside it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Self

from pydantic import TypeAdapter, ValidationError, model_validator

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed, read_words
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.places import Run, Store

_FOLDER = TypeAdapter(dict[str, str])
_KEY = "made_in"


def record_place(run: Run) -> None:
    """Record the working folder as that which relative paths of the run's configuration are relative to."""
    disk.write_text(run.made_in, json.dumps({_KEY: str(Path.cwd())}) + "\n")


def located(run: Run, spec: SweepSpec) -> SweepSpec:
    """Return a run's configuration with absolute paths: the store, and the files that are read after a sweep.

    A path to nothing stays where it was recorded; who needs it says so (`store_of`).
    """
    place = _Place.of(run, spec)
    dataset, statistics = spec.dataset, spec.statistics
    paths = {name: place.find(getattr(dataset, name)) for name in ("studies", "questions")}
    if dataset.source is not None:
        paths["source"] = place.find(dataset.source)
    protocol = place.find(Path(dataset.protocol))  # the name of a packaged one, or a folder
    named = {"protocol": str(protocol)} if protocol.is_dir() else {}
    changes: dict[str, object] = {
        "store": run.given_store.absolute() if run.given_store is not None else place.find_store(spec.store),
        "outputs": place.outputs,
        "dataset": dataset.model_copy(update={**paths, **named}),
    }
    if statistics.bertscore_model is not None:
        encoder = place.find(statistics.bertscore_model)
        changes["statistics"] = statistics.model_copy(update={"bertscore_model": encoder})
    return spec.model_copy(update=changes)


def store_of(run: Run, spec: SweepSpec) -> Store:
    """Return the store of a run whose configuration was read; InputError if it is not there."""
    if not spec.store.is_dir():
        if run.given_store is not None:
            raise InputError(
                f"store={spec.store}: no such folder; give the folder that holds the store of {run.root}"
            )
        raise InputError(
            f"{spec.store}: no such folder, and {run.root} was made with that store; put it back, or add "
            "store=... with the folder where it is now"
        )
    return Store(spec.store)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a run is now, and where it was made; the working folder where that is not recorded."""

    run: Run
    made_in: Path
    recorded_outputs: Path
    outputs: Path

    @classmethod
    def of(cls, run: Run, spec: SweepSpec) -> "_Place":
        made_in = _made_in(run)
        return cls(run, made_in, made_in / spec.outputs, Path(os.path.abspath(run.root)).parent)

    def find(self, path: Path) -> Path:
        """The first place of a relative path where something is; an absolute one leads to one place."""
        return path if path.is_absolute() else self._first(path, self._places(path))

    def find_store(self, path: Path) -> Path:
        """The first place with the completions of all models of the run, else the first that is there."""
        models = _models(self.run)
        places = list(self._places(path))
        for place in places:
            if place.is_dir() and all(Store(place).completions(key).is_dir() for key in models):
                return place
        return self._first(path, iter(places))

    def _first(self, path: Path, places: Iterator[Path]) -> Path:
        return next((place for place in places if place.exists()), self.made_in / path)

    def _places(self, path: Path) -> Iterator[Path]:
        """Where a path may lead: where an absolute one was, beside the run, and as recorded."""
        if path.is_absolute():
            yield path
        yield from self._beside(self.made_in / path)
        yield self.made_in / path

    def _beside(self, recorded: Path) -> Iterator[Path]:
        """Yield places as far from the run as when it was made, by its folder's name and behind links."""
        way = os.path.relpath(recorded, self.recorded_outputs)
        for folder in dict.fromkeys((self.outputs, self.run.root.resolve().parent)):
            yield Path(os.path.normpath(folder / way))


def _made_in(run: Run) -> Path:
    if not run.made_in.exists():
        return Path.cwd()
    try:
        folder = Path(_FOLDER.validate_python(read_json(run.made_in))[_KEY])
    except (OSError, ValueError, ValidationError, KeyError) as error:
        raise InputError(
            f"{run.made_in}: does not name the folder that the run was made in ({error}); put it back, or "
            "delete it and name the store with store=..."
        ) from None
    if not folder.is_absolute():
        raise InputError(f"{run.made_in}: {folder} is no absolute path; put the file back as it was")
    return folder


def _models(run: Run) -> list[str]:
    """The keys of a finished run's models; none of one that is not finished, or whose manifest is broken."""
    try:
        models = read_json(run.manifest)["models"].values()
        return [str(facts["model_key"]) for facts in models]
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return []


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
