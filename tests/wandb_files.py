"""What an offline run of W&B holds, read from its own files."""

import json
import struct
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from wandb.proto.wandb_internal_pb2 import Record

# of when and where a run was written: clocks, and ids that W&B draws for its own files
_VOLATILE = ("_runtime", "_timestamp", "_wandb", "artifact_path", "_latest_artifact_path")


def logged(path: Path) -> dict[str, Any]:
    """Configuration and summary of an offline run by name."""
    found = {}
    for record in records(path):
        for item in (*record.run.config.update, *record.run.summary.update, *record.summary.update):
            found[item.key or "/".join(item.nested_key)] = json.loads(item.value_json)
    return found


def content(path: Path) -> dict[str, Any]:
    """Everything of an offline run that does not depend on when and where it was written."""
    (run,) = [record.run for record in records(path) if record.HasField("run")]
    names = ("run_id", "project", "run_group", "job_type", "display_name", "host")
    steps = [
        {item.key or "/".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in records(path)
        if record.HasField("history")
    ]
    media = {str(file.relative_to(path.parent)): file for file in path.parent.glob("files/media/*/*")}
    tables = {name: json.loads(media[name].read_text()) for name in media if name.endswith(".json")}
    pages = {name: sha256(media[name].read_bytes()).hexdigest() for name in media if name.endswith(".html")}
    return {
        **{name: getattr(run, name) for name in names},
        "pages": pages,
        "tags": list(run.tags),
        "logged": lasting(logged(path)),
        "steps": [lasting(step) for step in steps],
        "tables": tables,
    }


def kept_tables(path: Path) -> dict[str, Path]:
    """The Parquet files of an offline run's artifacts, where W&B staged them, by name."""
    return {
        entry.path: Path(entry.local_path)
        for record in records(path)
        if record.HasField("artifact") and record.artifact.type == "table"
        for entry in record.artifact.manifest.contents
    }


def lasting(values: dict[str, Any], above: str = "") -> dict[str, Any]:
    """Values by name, nested ones as `outer/inner`, without volatile ones; null reaches no server."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if value is None or set(name.split("/")) & set(_VOLATILE):
            continue
        found |= lasting(value, f"{above}{name}/") if isinstance(value, dict) else {above + name: value}
    return found


def records(path: Path) -> Iterator[Record]:
    """The records of a .wandb file."""
    for data in _log_records(path.read_bytes()):
        record = Record()
        record.ParseFromString(data)
        yield record


def _log_records(content: bytes) -> Iterator[bytes]:
    """Records of a LevelDB log: blocks of 32 KiB; a chunk has checksum, length and kind before its bytes."""
    assert content.startswith(b":W&B")
    header, block, last_kinds = 7, 1 << 15, {1, 4}  # whole, or the last piece
    place, pieces = header, b""
    while place + header <= len(content):
        if block - place % block < header:  # the rest of a block is filled with zeros
            place += block - place % block
            continue
        length, kind = struct.unpack_from("<HB", content, place + 4)
        pieces += content[place + header : place + header + length]
        place += header + length
        if kind in last_kinds:
            yield pieces
            pieces = b""
