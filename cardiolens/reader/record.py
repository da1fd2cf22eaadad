"""The record of a training: what determined the weights, the duration, and the learning curve."""

import json
import platform
from importlib.metadata import version
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.running_version import running_version
from cardiolens.base.untrusted.bounded_files import parse_json, read_text
from cardiolens.config.reader import ReaderSpec
from cardiolens.reader.learn import CURVE

RECORD = "training.json"


def write_record(spec: ReaderSpec, folder: Path) -> None:
    """Write `training.json` beside the weights."""
    curve = [parse_json(line) for line in read_text(spec.out / CURVE).splitlines()]
    record = {
        "schema": "training-1",
        "recipe": spec.model_dump(mode="json", exclude={"out", "device"}),
        "cardiolens": running_version(),
        "hours": round(curve[-1]["seconds"] / 3600, 2),
        "machine": platform.machine(),
        "versions": {name: version(name) for name in ("torch", "transformers", "tokenizers")},
        "curve": curve,
    }
    disk.write_text(folder / RECORD, json.dumps(record, indent=1) + "\n")
