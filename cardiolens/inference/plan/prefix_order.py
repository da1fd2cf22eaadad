"""The order in which the requests of a study are asked: those that begin with the same frames come together.

An engine keeps what it computed for the beginning of a prompt, and the encoder's outputs of frames, as long
as there is room. In this order, whatever two requests share was needed just before, so little room
suffices.
"""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cardiolens.inference.plan.control import BLANK
from cardiolens.inference.plan.few_shot import has_examples
from cardiolens.protocol.prompts.frames import has_videos

SHOWN = (
    "frames_study_id",
    "system",
    "flags",
    "frames",
    "subtask",
)  # columns of REQUESTS that decide a prompt's beginning
_END = -1  # behind the last frame of a request: a shorter prompt comes before those that continue it


def beginnings(requests: pa.Table) -> np.ndarray:
    """Return one row of numbers per request: what stands before its frames, then its frames in order.

    Two prompts share as much of their beginning as these rows do.
    """
    lists = requests["frames"].combine_chunks()
    n_frames = np.asarray(pc.fill_null(pc.list_value_length(lists), 0), dtype=np.int64)
    flat = lists.flatten()
    volumes = _numbers(flat.field("volume_id"))
    rows = np.full((len(n_frames), 1 + n_frames.max(initial=0)), _END, dtype=np.int64)
    columns = (requests[name].to_pylist() for name in ("frames_study_id", "system", "flags", "subtask"))
    before = [  # examples stand before the frames, and are those of the subtask
        (study, system, BLANK in (flags or ()), subtask if has_examples(flags or ()) else "")
        for study, system, flags, subtask in zip(*columns, strict=True)
    ]
    filmed = [  # a video is shared as a whole or not at all, so only by prompts with all the same frames
        lists[row].as_py() if has_videos(flags or ()) else None
        for row, flags in enumerate(requests["flags"].to_pylist())
    ]
    rows[:, 0] = _numbers(pa.array(map(repr, zip(before, filmed, strict=True)), pa.string()))
    starts = np.cumsum(n_frames) - n_frames
    parents = np.repeat(np.arange(len(n_frames)), n_frames)
    positions = np.arange(len(parents)) - starts[parents]
    rows[parents, 1 + positions] = volumes << 32 | np.asarray(flat.field("idx"), dtype=np.int64)
    return rows


def prefix_order(rows: np.ndarray) -> np.ndarray:
    """Return the order that brings equal beginnings together; requests that begin alike keep their order."""
    order: np.ndarray = np.lexsort(rows.T[::-1])
    return order


def shared_frames(rows: np.ndarray) -> np.ndarray:
    """Return how many frames each request begins with as the one before it does; 0 for the first."""
    same = (rows[1:] == rows[:-1]) & (rows[1:] != _END)
    frames = np.maximum(np.cumprod(same, axis=1).sum(axis=1) - 1, 0)
    shared: np.ndarray = np.concatenate([[0], frames]).astype(np.int64)
    return shared


def frames_of(rows: np.ndarray) -> np.ndarray:
    """Return the number of frames of each request."""
    counts: np.ndarray = (rows[:, 1:] != _END).sum(axis=1)
    return counts


def _numbers(values: pa.Array) -> np.ndarray:
    """Number distinct values in the order of their first appearance."""
    return np.asarray(pc.dictionary_encode(values).indices, dtype=np.int64)
