"""Paths on disk: the store, shared by all sweeps on the same data, the folder of one run, and where they are.

A configuration keeps its paths as they were given, because the name of the run is a digest of them. The
folder that they are relative to is recorded when the run is made. A run that was moved or copied together
with its store leads to the store beside it.
"""

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.base import GivenPath, Spec
from cardiolens.config.command_words import Listed
from cardiolens.config.sweep import SweepSpec


class _Below:
    """A file or folder of fixed name below the root of a store or a run."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, owner: "Store | Run", kind: type) -> Path:
        return owner.root / self._name


@dataclass(frozen=True, slots=True)
class Store:
    """Shards, questions and completions of one dataset, under one folder."""

    root: Path

    questions = _Below("questions")
    evidence = _Below("evidence")
    models = _Below("models")  # digests of the files of models

    def completions(self, model_key: str) -> Path:
        return self.root / "completions" / model_key


@dataclass(frozen=True, slots=True)
class Run:
    """The folder of one sweep; the same configuration leads to the same folder."""

    root: Path
    given_store: Path | None = None  # where the store is now, if somebody said so

    verdicts = _Below("verdicts")
    seen = _Below("seen")  # frames, prompts and replies of chains, stage by stage
    scores = _Below("scores")
    comparisons = _Below("comparisons")
    analyses = _Below("analyses.json")
    page = _Below("index.html")
    viewer = _Below("viewer")  # the folder of the case viewer
    configuration = _Below("configuration.json")
    made_in = _Below("made_in.json")  # the folder that relative paths of the configuration are relative to
    declaration = _Below("declared.json")  # the comparison that was declared before the run started
    audit = _Below("audit.json")  # the readings of sampled replies by a person, beside those of the product
    manifest = _Below("manifest.json")
    log = _Below("sweep.log")
    closing = _Below("closing.txt")  # what the run does after its last reply, while it does it
    jobs = _Below("slurm")  # batch scripts of a submitted run, and what they print
    model_records = _Below("groups")  # records of the models of a submitted run

    def requests(self, model: str) -> Path:
        return self.root / "requests" / model

    def progress(self, model: str) -> Path:
        """Progress of a model: one line per finished study."""
        return self.root / "progress" / f"{model}.jsonl"


# Options of execution and mirroring: they change no answer, so they do not enter the digest of a run.
_EXECUTION = ("outputs", "cluster", "tracker", "stream", "page", "mode", "keep_going")


def run_of(spec: SweepSpec) -> Run:
    """The run of a sweep: named by its experiment and a digest of the options that decide its numbers."""
    return Run(spec.outputs / f"{spec.name}-{digest_of(deciding(spec))[:8]}")


def deciding(spec: SweepSpec) -> dict[str, Any]:
    """Select the part of a configuration that decides a sweep's numbers."""
    left_out: dict[str, Any] = {
        **dict.fromkeys(_EXECUTION, True),
        "dataset": {"link_roots", "source"},
        "model": True,
    }
    values = spec.model_dump(mode="json", exclude=left_out)
    values["dataset"]["allow"] = sorted(set(values["dataset"]["allow"]) - {"absent_studies"})
    return values | {"model": [model.deciding() for model in spec.model]}


def record_place(run: Run) -> None:
    """Record the working folder as that which relative paths of the run's configuration are relative to."""
    disk.write_text(run.made_in, json.dumps({"made_in": str(Path.cwd())}) + "\n")


def located(run: Run, spec: SweepSpec) -> SweepSpec:
    """Return a run's configuration with absolute paths: the store, and the files that are read after a sweep.

    A path to nothing stays where it was recorded; who needs it says so (`store_of`).
    """
    made_in = _made_in(run)

    def places(path: Path) -> list[Path]:
        """Where a path may lead: as far from the run as it was, by name or behind links; as recorded."""
        if path.is_absolute():
            return [path]
        way = os.path.relpath(made_in / path, made_in / spec.outputs)
        roots = Path(os.path.abspath(run.root)), run.root.resolve()
        return [*(Path(os.path.normpath(root.parent / way)) for root in roots), made_in / path]

    def find(path: Path, holding: str = "") -> Path:
        there = (place for place in places(path) if (place / holding).exists())
        return next(there, made_in / path)

    dataset, statistics = spec.dataset, spec.statistics
    named_paths = {"studies": dataset.studies, "questions": dataset.questions, "source": dataset.source}
    paths: dict[str, object] = {name: find(path) for name, path in named_paths.items() if path is not None}
    protocol = find(Path(dataset.protocol))  # the name of a packaged one, or a folder
    if protocol.is_dir():
        paths["protocol"] = str(protocol)
    changes: dict[str, object] = {
        "store": run.given_store.absolute() if run.given_store else find(spec.store, "completions"),
        "outputs": Path(os.path.abspath(run.root)).parent,
        "dataset": dataset.model_copy(update=paths),
    }
    if statistics.bertscore_model is not None:
        encoder = find(statistics.bertscore_model)
        changes["statistics"] = statistics.model_copy(update={"bertscore_model": encoder})
    return spec.model_copy(update=changes)


def store_of(run: Run, spec: SweepSpec) -> Store:
    """Return the store that a run's configuration names; InputError if it is not there."""
    if not spec.store.is_dir():
        raise InputError(
            f"store={spec.store}: no such folder; expected the store of {run.root}; put it back, or add "
            "store=... with the folder where it is now"
        )
    return Store(spec.store)


def _made_in(run: Run) -> Path:
    """The folder that the run was made in; of a run without that record the working folder."""
    if not run.made_in.exists():
        return Path.cwd()
    try:
        folder = Path(read_json(run.made_in)["made_in"])
        if not folder.is_absolute():
            raise ValueError(f"{folder} is no absolute path")
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise InputError(
            f"{run.made_in}: does not name the folder that the run was made in ({error}); put it back, or "
            "delete it and name the store with store=..."
        ) from None
    return folder


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

    def _problems(self) -> Iterator[str]:
        if self.run is None and self.runs is None:
            yield "run= is not given; give run=... or runs=[...,...]"
        if self.run is not None and self.runs is not None:
            yield "runs=: stands beside run=; give one of them"
        if self.runs is not None and len(self.runs) < 2:
            yield f"runs=[{','.join(map(str, self.runs))}]: give two runs or more"

    def open(self) -> list[Run]:
        """Open the runs; InputError if a folder does not exist."""
        if self.run is not None:
            return [open_run("run", self.run, self.store)]
        return open_runs(self.runs or (), self.store)


def open_runs(folders: Sequence[Path], store: Path | None = None) -> list[Run]:
    """Open the runs that are seen as one; InputError for one that does not exist or is named twice."""
    runs = [open_run("runs", folder, store) for folder in folders]
    if len({run.root.resolve() for run in runs}) < len(runs):
        raise InputError(f"runs=[{','.join(map(str, folders))}]: give each run once")
    return runs


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
