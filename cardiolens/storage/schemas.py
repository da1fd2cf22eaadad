"""The Arrow schemas of the fourteen tables; every step of the flow reads and writes these and nothing else.

`schemas.yaml` has the columns with their types and meanings; docs/reference/tables.md lists them.
"""

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import pyarrow as pa
import yaml

SCHEMA_VERSION = "1"

FRAME = "\ufffc"  # marks the place of a frame in a message; marks side by side are the place of a video

# The status of a request as planned, and the statuses of a completion that end a request.
PLANNED = "planned"
OVERFLOW = "overflow"
ILLEGAL_SELECTION = "illegal_selection"  # a reader that chooses asked for no frame that there is
FINAL = ("ok", "refused", ILLEGAL_SELECTION)

# Parse statuses of second turns, and all of replies that were read.
ASKED_BACK = "asked_back"  # the model gave its letters when its first reply was quoted to it
NO_ANSWER = "no_answer"  # it said that its first reply gives no answer
READ = ("ok", ASKED_BACK, "inconsistent")

_FILE = files("cardiolens.storage").joinpath("schemas.yaml").read_text(encoding="utf-8")
COLUMNS: Mapping[str, Mapping[str, Any]] = yaml.load(_FILE, Loader=yaml.CSafeLoader)
"""Type and meaning of each column, by table; under `records` the fields of entries of lists."""

_TYPES = {"instant": pa.timestamp("us", tz="UTC"), "numbers": pa.map_(pa.string(), pa.float64())}


def _type(name: str) -> pa.DataType:
    """Return the type of a name."""
    if name.startswith("list<"):
        return pa.list_(_type(name.removeprefix("list<").removesuffix(">")))
    if name in COLUMNS["records"]:
        return pa.struct([(field, _type(kind)) for field, kind in COLUMNS["records"][name].items()])
    return _TYPES[name] if name in _TYPES else pa.type_for_alias(name)


def _schema(name: str) -> pa.Schema:
    fields = [(column, _type(kind)) for column, (kind, _) in COLUMNS[name].items()]
    return pa.schema(fields, metadata={"table": name, "version": SCHEMA_VERSION})


OPTION = _type("option")
VOLUMES = _schema("volumes")
FRAMES = _schema("frames")
QUESTIONS = _schema("questions")
EVIDENCE = _schema("evidence")
REQUESTS = _schema("requests")
EXAMPLES = _schema("examples")
STAGES = _schema("stages")
OFFERS = _schema("offers")
CHOICES = _schema("choices")
COMPLETIONS = _schema("completions")
VERDICTS = _schema("verdicts")
SCORES = _schema("scores")
COMPARISONS = _schema("comparisons")
SEEN = _schema("seen")
