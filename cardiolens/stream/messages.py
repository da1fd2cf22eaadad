"""Schemas of what travels between reader, replica and writer."""

import pyarrow as pa

from cardiolens.engine.ask import ErrorKind

PICTURE = pa.struct(
    [("key", pa.string()), ("height", pa.int32()), ("width", pa.int32()), ("pixels", pa.large_binary())]
)
ASK = pa.struct(
    [
        ("request_key", pa.string()),
        ("system", pa.string()),
        ("text", pa.string()),
        ("frame_keys", pa.list_(pa.string())),
        ("answer_type", pa.string()),
        ("option_keys", pa.list_(pa.string())),
        ("legal", pa.list_(pa.string())),
        ("max_tokens", pa.int32()),
        ("reasons_first", pa.bool_()),
        ("attempt", pa.int32()),
        ("arm_id", pa.string()),
        ("qa_id", pa.string()),
    ]
)
STUDY_ASKS = pa.schema([("study_id", pa.string()), ("asks", pa.list_(ASK)), ("pictures", pa.list_(PICTURE))])

COUNTERS = (
    "ok",
    "refused",
    "error",
    "frames_referenced",
    "frames_processed",
    "prompt_tokens",
    "cached_tokens",
    "output_tokens",
    "engine_starts",
    "load_ms",  # of these
    *ErrorKind,  # errors, each by its kind
)

PROGRESS = pa.schema(
    [
        ("study_id", pa.string()),
        ("seat", pa.string()),  # <Ray node>:<its GPUs that the replica sees>
        *((name, pa.int64()) for name in COUNTERS),
    ]
)
