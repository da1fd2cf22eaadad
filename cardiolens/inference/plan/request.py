"""One row of the `requests` table as a value, from the planner to the engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.legal import Constraint, constraint_of
from cardiolens.storage import tables
from cardiolens.storage.schemas import REQUESTS


class FrameRef(NamedTuple):
    """A frame of a study, by its canonical index."""

    volume_id: str
    idx: int


@dataclass(frozen=True, slots=True)
class Request:
    """One question under one arm; the fields are the columns of REQUESTS, which documents them."""

    arm_id: str
    qa_id: str
    study_id: str
    frames_study_id: str | None
    subtask: str
    frames: tuple[Frame | FrameRef, ...]
    system: str
    prompt: str
    template: str
    answer_format: str
    answer_type: str
    option_keys: tuple[str, ...]
    exclusive: tuple[str, ...]
    max_tokens: int
    stage: int
    replicate: int
    flags: tuple[str, ...]
    status: str
    predicted_tokens: int | None
    request_key: str

    @property
    def constraint(self) -> Constraint:
        """The constraint on decoding the reply; hashed into the key and passed to the engine."""
        return constraint_of(self.answer_format, self.answer_type, self.option_keys, self.exclusive)


def read_requests(part: Path, rows: Sequence[int]) -> list[Request]:
    """Read the given rows of one part, in the given order."""
    taken = tables.read_part(part, REQUESTS).take(pa.array(rows, pa.int32()))
    return [
        Request(
            **row
            | {
                "frames": tuple(FrameRef(frame["volume_id"], frame["idx"]) for frame in row["frames"]),
                **{name: tuple(row[name]) for name in ("option_keys", "exclusive", "flags")},
            }
        )
        for row in taken.to_pylist()
    ]
