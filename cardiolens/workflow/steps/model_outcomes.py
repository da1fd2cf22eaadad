"""Outcomes of preparation: their rows from workers to the driver, and their counts."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from cardiolens.base.counted import counted
from cardiolens.base.errors import RunError
from cardiolens.study.cohort import StudyRecord
from cardiolens.study.group import Outcome

# Rows from workers to the driver, one per study; `record` is the JSON for cohort.json.
OUTCOMES = pa.schema(
    [
        ("name", pa.string()),
        ("record", pa.string()),
        ("prepared", pa.bool_()),
        ("error", pa.string()),
        ("warnings", pa.list_(pa.string())),
        ("n_bytes", pa.int64()),
        ("fatal", pa.string()),  # a reason to end the run, e.g. a full disk
    ]
)


@dataclass(frozen=True, slots=True)
class Prepared:
    """Outcome of preparing a dataset; `failed` has (study, message) pairs."""

    prepared: int
    unchanged: int
    failed: tuple[tuple[str, str], ...]
    seconds: float
    bytes_read: int
    warnings: Mapping[str, int] = field(default_factory=dict)  # number of studies per warning
    found: Mapping[str, int] = field(default_factory=dict)  # studies per fact read from pixels

    def __str__(self) -> str:
        studies = self.prepared + self.unchanged + len(self.failed)
        return (
            f"{counted(studies, 'study')}: {self.prepared} prepared, {self.unchanged} unchanged, "
            f"{len(self.failed)} failed ({self.bytes_read / 1e6:.1f} MB read in {self.seconds:.1f} s)"
        )


def sorted_pairs(failed: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Return (study, error) pairs, sorted by study."""
    return tuple(sorted(failed.items()))


def counts_of(records: Mapping[str, StudyRecord]) -> tuple[Mapping[str, int], Mapping[str, int]]:
    """Return study counts per warning, and per finding in the pixels; no study is named."""
    return (
        Counter(warning for record in records.values() for warning in record.warnings),
        Counter(words for record in records.values() for words in record.found),
    )


def row_of(outcome: Outcome) -> dict[str, Any]:
    """Convert an outcome to a row of OUTCOMES."""
    return {
        "name": outcome.name,
        "record": None if outcome.record is None else outcome.record.model_dump_json(),
        "prepared": outcome.prepared,
        "error": outcome.error,
        "warnings": list(outcome.warnings),
        "n_bytes": outcome.n_bytes,
    }


def outcome_of(row: dict[str, Any]) -> Outcome:
    """Convert a row of OUTCOMES to an outcome; RunError if the row is fatal."""
    if row["fatal"] is not None:
        raise RunError(row["fatal"])
    record = None if row["record"] is None else StudyRecord.model_validate_json(row["record"])
    return Outcome(row["name"], record, row["prepared"], row["error"], tuple(row["warnings"]), row["n_bytes"])
