"""Reuse of a plan on disk that the same code wrote from the same inputs."""

import json
import logging
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from cardiolens.base.digest import digest_of
from cardiolens.base.untrusted.files import read_json
from cardiolens.storage import tables

_NOTE = "plan.json"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Everything that decides the requests of a model, by name; two equal ones give the same plan."""

    configuration: object  # the part of the sweep's configuration that decides its requests
    cohort: str  # SHA-256 of cohort.json
    questions: str  # SHA-256 of the questions file
    catalogue: str  # SHA-256 of the protocol's tasks
    templates: str | None  # digest of the user's own prompt templates
    sights: tuple[str, ...]  # keys of the sights of selectors
    code: str  # digest of this package
    cases: str | None = None  # SHA-256 of what prompts may tell of cases; None where questions tell all
    model_key: str | None = None  # None in the part that all models of a sweep share

    @property
    def parts(self) -> dict[str, str]:
        """A digest of each field, so that a note can tell which of them has changed."""
        return {name: digest_of(value) for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """Counts of the requests that were written for one model."""

    status_counts: Counter[str]
    most_frames: int  # that one request shows


def cached(folder: Path, fingerprint: Fingerprint) -> PlanTotals | None:
    """The plan in a folder, None unless it is whole and made from these inputs."""
    try:
        note = read_json(folder / _NOTE)
        if changed := _changed(note["fingerprint"], fingerprint.parts):
            log.info("%s: planned again, because of its %s", folder.name, ", ".join(changed))
            return None
        if note["parts"] != _sizes(folder):
            return None
        return PlanTotals(Counter(note["status_counts"]), note["most_frames"])
    except (OSError, ValueError, LookupError, TypeError, AttributeError):  # no note, or not one of ours
        return None


def _changed(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [name for name in {**before, **now} if before.get(name) != now.get(name)]


def keep(folder: Path, fingerprint: Fingerprint, totals: PlanTotals) -> None:
    """Note what the plan in a folder was made from; without the note it counts as unfinished."""
    note = {
        "fingerprint": fingerprint.parts,
        "status_counts": totals.status_counts,
        "most_frames": totals.most_frames,
        "parts": _sizes(folder),
    }
    tables.write_text(folder / _NOTE, json.dumps(note, indent=1) + "\n")


def _sizes(folder: Path) -> dict[str, int]:
    return {part.name: part.stat().st_size for part in tables.parts(folder)}
