"""Paths on disk: the store, shared by all sweeps on the same data, and the folder of one run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cardiolens.base.digest import digest_of
from cardiolens.config.sweep import SweepSpec


@dataclass(frozen=True, slots=True)
class Store:
    """Shards, questions and completions of one dataset, under one folder."""

    root: Path

    @property
    def questions(self) -> Path:
        return self.root / "questions"

    @property
    def evidence(self) -> Path:
        return self.root / "evidence"

    @property
    def models(self) -> Path:
        """Folder in which the embedded model is built."""
        return self.root / "models"

    def completions(self, model_key: str) -> Path:
        return self.root / "completions" / model_key


@dataclass(frozen=True, slots=True)
class Run:
    """The folder of one sweep; the same configuration leads to the same folder."""

    root: Path
    given_store: Path | None = None  # where the store is now, if somebody said so

    def requests(self, model: str) -> Path:
        return self.root / "requests" / model

    @property
    def verdicts(self) -> Path:
        return self.root / "verdicts"

    @property
    def seen(self) -> Path:
        """Frames, prompts and replies of chains, stage by stage."""
        return self.root / "seen"

    @property
    def scores(self) -> Path:
        return self.root / "scores"

    @property
    def comparisons(self) -> Path:
        return self.root / "comparisons"

    @property
    def analyses(self) -> Path:
        return self.root / "analyses.json"

    @property
    def page(self) -> Path:
        return self.root / "index.html"

    @property
    def viewer(self) -> Path:
        """The folder of the case viewer."""
        return self.root / "viewer"

    @property
    def configuration(self) -> Path:
        return self.root / "configuration.json"

    @property
    def made_in(self) -> Path:
        """The folder that relative paths of the configuration are relative to."""
        return self.root / "made_in.json"

    @property
    def declaration(self) -> Path:
        """The comparison that was declared before the run started."""
        return self.root / "declared.json"

    @property
    def audit(self) -> Path:
        """The readings of sampled replies by a person, beside those of the product."""
        return self.root / "audit.json"

    @property
    def manifest(self) -> Path:
        return self.root / "manifest.json"

    @property
    def log(self) -> Path:
        return self.root / "sweep.log"

    @property
    def closing(self) -> Path:
        """What the run does after its last reply, while it does it."""
        return self.root / "closing.json"

    def progress(self, model: str) -> Path:
        """Progress of a model: one line per finished study."""
        return self.root / "progress" / f"{model}.jsonl"

    @property
    def jobs(self) -> Path:
        """Batch scripts of a submitted run, and what they print."""
        return self.root / "slurm"

    @property
    def model_records(self) -> Path:
        """Records of the models of a submitted run."""
        return self.root / "groups"


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
