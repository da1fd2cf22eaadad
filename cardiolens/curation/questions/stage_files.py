"""Stages as JSON Lines files: one record per report, remade only if its input or the code changed."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import cardiolens
from cardiolens.base import disk, stage_versions
from cardiolens.base.digest import digest_of
from cardiolens.base.untrusted.bounded_files import parse_json, read_text

Record = dict[str, Any]
_HEAD = ("schema", "stage", "study_id", "report_id", "tool_version", "input_sha256")
_SAVED_EVERY = 500  # records; a crash costs no more


@dataclass
class Stages:
    """The stage files in one folder; `decided_by` is a digest that enters the key of every record."""

    out: Path
    decided_by: str  # digest of the catalogue
    made: dict[str, int] = field(default_factory=dict)  # records that were made now, by file
    counts: dict[str, int] = field(default_factory=dict)  # of all records, by file

    def run(
        self,
        name: str,
        schema: str,
        inputs: Sequence[Record],
        make: Callable[[Record], Mapping[str, Any]],
    ) -> list[Record]:
        """Return the records of a stage in input order, reusing those of the same input and version."""
        path = self.out / f"{name}.jsonl"
        record_of = {record["input_sha256"]: record for record in read_lines(path)}
        records: list[Record] = []
        self.made[name] = 0
        for stage_input in inputs:
            key = digest_of([stage_versions.DRAFTS, self.decided_by, name, stage_input])
            record = record_of.get(key)
            if record is None:
                head = {
                    "schema": schema,
                    "stage": int(name.partition("-")[0]),
                    "study_id": stage_input["study_id"],
                    "report_id": stage_input["report_id"],
                    "tool_version": cardiolens.__version__,
                    "input_sha256": key,
                }
                record = head | dict(make(stage_input))
                record_of[key] = record
                self.made[name] += 1
                if self.made[name] % _SAVED_EVERY == 0:
                    write_lines(path, record_of.values())
            records.append(record)
        write_lines(path, records)
        self.counts[name] = len(records)
        return records


def body(record: Mapping[str, Any]) -> Record:
    """Return a record without its head."""
    return {name: value for name, value in record.items() if name not in _HEAD}


def read_lines(path: Path) -> list[Record]:
    """Read the records of a file; empty if it is missing or malformed."""
    try:
        lines = read_text(path).split("\n")
        return [dict(parse_json(line)) for line in lines if line]
    except (OSError, ValueError, TypeError):
        return []


def write_lines(path: Path, records: Any) -> None:
    """Write records as JSON Lines, atomically."""
    disk.write_text(path, "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records))
