"""Paths on disk: the store, shared by all sweeps on the same data, and the folder of one run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.digest import digest_of
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
    models = _Below("models")  # where the embedded model is built

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
    closing = _Below("closing.json")  # what the run does after its last reply, while it does it
    jobs = _Below("slurm")  # batch scripts of a submitted run, and what they print
    model_records = _Below("groups")  # records of the models of a submitted run

    def requests(self, model: str) -> Path:
        return self.root / "requests" / model

    def progress(self, model: str) -> Path:
        """Progress of a model: one line per finished study."""
        return self.root / "progress" / f"{model}.jsonl"


# Options of execution and mirroring: they change no answer, so they do not enter the digest of a run.
_EXECUTION = (
    "outputs",
    "cluster",
    "tracker",
    "stream",
    "page",
    "mode",
    "keep_going",
)


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
