"""Messages between loader, replica and driver: Arrow schemas, and types of their rows."""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa

from cardiolens.inference.engine.ask import Ask, ErrorKind, Pictures
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
AskRow = Mapping[str, Any]
"""A row of ASK."""


class PictureRow(TypedDict):
    """A row of PICTURE: one rendered frame, uint8, row by row."""

    key: str
    height: int
    width: int
    channels: int
    pixels: bytes | memoryview | pa.Buffer


class StudyAsks(TypedDict):
    """A row of STUDY_ASKS: missing requests of one study, and every frame they show, once."""

    study_id: str
    part: str
    asks: Sequence[AskRow]
    pictures: Sequence[PictureRow]


class CompletionRow(TypedDict, total=False):
    """A row of the `completions` table, without `written_at`, which the writer adds."""

    request_key: str
    text: str
    reasoning: str | None
    finish_reason: str
    option_logprobs: Sequence[tuple[str, float]]
    prompt_tokens: int
    cached_tokens: int
    output_tokens: int
    seconds: float
    node: str
    attempt: int
    status: str
    error: str


COUNTERS = (
    "ok",
    "refused",
    "error",
    "frames_referenced",
    "frames_processed",
    "frames_encoded",  # runs of the vision encoder
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "illegal_selection",
    "not_shown",  # names that readers asked for but that were not frames on offer
    "asked_back",  # second turns
    "engine_starts",
    "load_ms",  # total duration of the engine starts
    *ErrorKind,  # number of errors of each kind
)

PROGRESS = pa.schema(
    [
        ("study_id", pa.string()),
        ("seat", pa.string()),  # <Ray node>:<GPUs of the node that the replica sees>
        *((name, pa.int64()) for name in COUNTERS),
        ("stages", pa.list_(pa.int64())),  # requests per stage of chains; the chains count in COUNTERS
        ("warnings", pa.list_(pa.string())),  # of the replica's process, since its last row
    ]
)


def counters_of(progress: pa.Table) -> Counter[str]:
    """Sum rows of PROGRESS by counter; stages of chains are counted under the names of `stage_counter`."""
    counters = Counter({name: sum(progress[name].to_pylist()) for name in COUNTERS})
    for counted in progress["stages"].to_pylist():
        counters.update({stage_counter(stage): n for stage, n in enumerate(counted)})
    return counters


def stage_counter(stage: int) -> str:
    """Return the counter name of the requests of a chain stage; the first stage is 0."""
    return f"stage_{stage}"


def table_of(studies: Sequence[StudyAsks]) -> pa.Table:
    """Return a STUDY_ASKS table; pixels are copied once, which row by row Arrow does thrice."""
    rows = [row for study in studies for row in study["pictures"]]
    small = pa.Table.from_pylist([{**row, "pixels": None} for row in rows], schema=pa.schema(list(PICTURE)))
    columns = {name: small[name].combine_chunks() for name in small.column_names}
    columns["pixels"] = _joined([row["pixels"] for row in rows])
    pictures = pa.StructArray.from_arrays(list(columns.values()), fields=list(PICTURE))
    table = pa.Table.from_pylist([{**study, "pictures": None} for study in studies], schema=STUDY_ASKS)
    ends = accumulate((len(study["pictures"]) for study in studies), initial=0)
    column = pa.ListArray.from_arrays(pa.array(ends, pa.int32()), pictures)
    return table.set_column(table.schema.get_field_index("pictures"), STUDY_ASKS.field("pictures"), column)


def _joined(pixels: Sequence[bytes | memoryview | pa.Buffer]) -> pa.LargeBinaryArray:
    flat = [np.frombuffer(frame, np.uint8) for frame in pixels]
    ends = np.cumsum([0, *map(len, flat)], dtype=np.int64)
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.concatenate([np.empty(0, np.uint8), *flat]))]
    return pa.Array.from_buffers(pa.large_binary(), len(flat), buffers)


def studies_of(block: pa.Table) -> list[StudyAsks]:
    """Return the rows of a STUDY_ASKS table; their pixels stay where they are."""
    studies: list[StudyAsks] = block.drop_columns(["pictures"]).to_pylist()
    for study, pictures in zip(studies, block["pictures"], strict=True):
        study["pictures"] = _pictures(pictures.values)
    return studies


def _pictures(rows: pa.StructArray) -> list[PictureRow]:
    small = pa.table({field.name: rows.field(field.name) for field in PICTURE if field.name != "pixels"})
    pictures: list[PictureRow] = small.to_pylist()
    pixels = rows.field("pixels")
    _, offsets, bytes_of_all = pixels.buffers()
    ends = np.frombuffer(offsets, np.int64)[pixels.offset : pixels.offset + len(pixels) + 1].tolist()
    for picture, first, end in zip(pictures, ends, ends[1:], strict=False):
        picture["pixels"] = bytes_of_all.slice(first, end - first)  # a scalar of Arrow would be a copy
    return pictures


def ask_of(row: AskRow, *, names_question: bool = False) -> Ask:
    """Return the request of a row as an engine sees it; with `names_question`, with its arm and question."""
    form = (
        row["answer_format"],
        row["answer_type"],
        tuple(row["option_keys"]),
        tuple(row["exclusive"] or ()),
    )
    return Ask(
        request_key=row["request_key"],
        system=row["system"],
        text=row["prompt"],
        frame_keys=tuple(row["frame_keys"]),
        answer_type=row["answer_type"],
        option_keys=form[2],
        max_tokens=row["max_tokens"],
        constraint=constraint_of(*form),
        attempt=row["attempt"],
        arm_id=row["arm_id"] if names_question else None,
        qa_id=row["qa_id"] if names_question else None,
    )


def pictures_of(rows: Sequence[PictureRow]) -> Pictures:
    """Return a function from frame key to pixels; each frame is converted to an array once."""
    by_key = {row["key"]: row for row in rows}

    @cache
    def picture(key: str) -> np.ndarray:
        row = by_key[key]
        return shaped(row["pixels"], row["height"], row["width"], row["channels"])

    return picture
