"""Where the answers of a model come from: engine, device, attention backend, tensor parallel size."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.storage import schemas, tables

NUMERICS = ("engine", "device", "attention_backend", "tensor_parallel")
"""Columns of completions; the same request may have another answer where one of them differs."""


def numerics_of(requests: Path, completions: Path) -> list[dict[str, Any]]:
    """Count the answered requests of one model by their numerics, the most frequent first."""
    keys = pc.unique(tables.read(requests, schemas.REQUESTS, ("request_key",))["request_key"])
    rows = tables.read(completions, schemas.COMPLETIONS, ("request_key", "status", *NUMERICS))
    final = pc.is_in(rows["status"], pa.array(schemas.FINAL))
    rows = rows.filter(pc.and_(final, pc.is_in(rows["request_key"], keys)))
    counted = rows.group_by(list(NUMERICS)).aggregate([("request_key", "count_distinct")])
    records = counted.rename_columns([*NUMERICS, "requests"]).to_pylist()
    return sorted(records, key=lambda record: (-record["requests"], str(record)))


def phrase(record: dict[str, Any]) -> str:
    """Return one set of numerics and its number of requests as a phrase."""
    size = record["tensor_parallel"]
    parts = (
        record["engine"],
        record["device"],
        record["attention_backend"],
        size and f"tensor parallel {size}",
    )
    return f"{', '.join(part or 'unknown' for part in parts)} ({record['requests']:,} requests)"
