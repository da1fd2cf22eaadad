"""Reuse a plan on disk if the same code wrote it from the same inputs."""

import json
import logging
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.digest import digest_of
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.storage import tables

_NOTE = "plan.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything that decides the requests of a model; equal fingerprints give the same plan."""

    configuration: object  # the part of the sweep's configuration that decides its requests
    cohort: str  # SHA-256 of cohort.json
    questions: str  # SHA-256 of the questions file
    catalogue: str  # SHA-256 of the protocol's tasks
    templates: str | None  # digest of the user's own prompt templates
    sights: tuple[str, ...]  # keys of the sights of selectors
    code: str  # version of the stage
    cases: str | None = None  # SHA-256 of the case texts for prompts; None without cases
    plugins: tuple[str, ...] = ()  # digests of the selectors and controls of other packages
    protocol: str | None = None  # digest of what a user's own protocol holds besides tasks
    model_key: str | None = None  # None in the fingerprint that all models of a sweep share

    @property
    def parts(self) -> dict[str, str]:
        """A digest of each field, so that `cached` can log which field changed."""
        return {name: digest_of(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """Counts of the requests written for one model."""

    status_counts: Counter[str] = field(default_factory=Counter)
    most_frames: int = 0  # the largest number of frames in one request

    def __add__(self, addend: "PlanTotals") -> "PlanTotals":
        most = max(self.most_frames, addend.most_frames)
        return PlanTotals(self.status_counts + addend.status_counts, most)


def cached(folder: Path, fingerprint: Fingerprint) -> PlanTotals | None:
    """Return the totals of the plan in a folder; None unless it is whole and made from these inputs."""
    try:
        note = read_json(folder / _NOTE)
        before, now = note["fingerprint"], fingerprint.parts
        if changed := [name for name in {**before, **now} if before.get(name) != now.get(name)]:
            log.info("%s: planned again, because of its %s", folder.name, ", ".join(changed))
            return None
        if note["parts"] != _sizes(folder):
            return None
        return PlanTotals(Counter(note["status_counts"]), note["most_frames"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no note, or a foreign file
        return None


def keep(folder: Path, fingerprint: Fingerprint, totals: PlanTotals) -> None:
    """Write the note on a finished plan: fingerprint and counts. Without a note a plan is unfinished."""
    note = {
        "fingerprint": fingerprint.parts,
        "status_counts": totals.status_counts,
        "most_frames": totals.most_frames,
        "parts": _sizes(folder),
    }
    disk.write_text(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def _sizes(folder: Path) -> dict[str, int]:
    return {part.name: part.stat().st_size for part in tables.parts(folder)}
