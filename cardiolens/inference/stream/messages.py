"""Messages between loader, replica and driver: Arrow schemas, and types of their rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from cardiolens.inference.engine.ask import Ask, Pictures
from cardiolens.inference.plan.missing import REPLY
from cardiolens.protocol.tasks.legal import constraint_of
from cardiolens.storage.schemas import REQUESTS
from cardiolens.study.shards import shaped

PICTURE = pa.struct(
    [
        ("key", pa.string()),
        ("height", pa.int32()),
        ("width", pa.int32()),
        ("channels", pa.int32()),
        ("pixels", pa.large_binary()),
    ]
)
OF_REQUEST = (
    *("request_key", "arm_id", "qa_id", "system", "prompt", "answer_format", "answer_type", "option_keys"),
    *("exclusive", "max_tokens", "stage"),
)  # columns of REQUESTS that a replica needs
ASK = pa.struct(
    [
        *map(REQUESTS.field, OF_REQUEST),
        ("frame_keys", pa.list_(pa.string())),  # in the order of the marks in the prompt
        ("attempt", pa.int32()),
        ("reply", REPLY),  # the stored reply to ask back; null without one
    ]
)
STUDY_ASKS = pa.schema(
    [
        ("study_id", pa.string()),
        ("part", pa.string()),  # of `requests`, beside which the chains are
        ("asks", pa.list_(ASK)),
        ("pictures", pa.list_(PICTURE)),
    ]
)
PROGRESS = pa.schema(
    [
        ("study_id", pa.string()),
        ("seat", pa.string()),  # <Ray node>:<GPUs of the node that the replica sees>
        ("counters", pa.map_(pa.string(), pa.int64())),  # of the replica, since its last row
    ]
)
AskRow = Mapping[str, Any]
"""A row of ASK."""


class PictureRow(TypedDict):
    """A row of PICTURE: one rendered frame, uint8, row by row."""

    key: str
    height: int
    width: int
    channels: int
    pixels: bytes


class StudyAsks(TypedDict):
    """A row of STUDY_ASKS: missing requests of one study, and every frame they show, once."""

    study_id: str
    part: str
    asks: Sequence[AskRow]
    pictures: Sequence[PictureRow]


CompletionRow = dict[str, Any]
"""A row of the `completions` table, without `written_at`, which the writer adds."""


def counters_of(progress: pa.Table) -> Counter[str]:
    """Sum rows of PROGRESS by counter."""
    counters: Counter[str] = Counter()
    for counted in progress["counters"].to_pylist():
        counters.update(dict(counted))
    return counters


def stage_counter(stage: int) -> str:
    """Return the counter name of the requests of a chain stage; the first stage is 0."""
    return f"stage_{stage}"


def table_of(studies: Sequence[StudyAsks]) -> pa.Table:
    """Return a STUDY_ASKS table."""
    return pa.Table.from_pylist(studies, schema=STUDY_ASKS)


def studies_of(block: pa.Table) -> list[StudyAsks]:
    """Return the rows of a STUDY_ASKS table."""
    studies: list[StudyAsks] = block.to_pylist()
    return studies


def ask_of(row: AskRow, *, names_question: bool = False) -> Ask:
    """Return the request of a row as an engine sees it; with `names_question`, with its arm and question."""
    option_keys, exclusive = tuple(row["option_keys"]), tuple(row["exclusive"] or ())
    return Ask(
        request_key=row["request_key"],
        system=row["system"],
        text=row["prompt"],
        frame_keys=tuple(row["frame_keys"]),
        answer_type=row["answer_type"],
        option_keys=option_keys,
        max_tokens=row["max_tokens"],
        constraint=constraint_of(row["answer_format"], row["answer_type"], option_keys, exclusive),
        attempt=row["attempt"],
        arm_id=row["arm_id"] if names_question else None,
        qa_id=row["qa_id"] if names_question else None,
    )


def pictures_of(rows: Sequence[PictureRow]) -> Pictures:
    """Return a function from frame key to pixels."""
    by_key = {row["key"]: row for row in rows}
    return lambda key: pixels_of(by_key[key])


def pixels_of(row: PictureRow) -> np.ndarray:
    """Return the pixels of a frame, without copying."""
    return shaped(row["pixels"], row["height"], row["width"], row["channels"])
