"""The examples that requests show, kept in a table of their own beside the parts of `requests`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cardiolens.inference.plan.request import FrameRef
from cardiolens.protocol.select.selection import Frame
from cardiolens.storage import tables
from cardiolens.storage.schemas import EXAMPLES

FLAG = "shots:"  # flag of a request that shows examples, before their number
_FOLDER = "examples"


@dataclass(frozen=True, slots=True)
class ShownExample:
    """A solved question in a prompt, with the frames that it shows of another patient's study."""

    qa_id: str
    study_id: str
    frames: tuple[Frame | FrameRef, ...]


def flag_of(examples: Sequence[ShownExample]) -> str:
    """The flag of a request that shows these examples."""
    return f"{FLAG}{len(examples)}"


def has_examples(flags: Iterable[str]) -> bool:
    """Whether a request with these flags shows examples."""
    return any(flag.startswith(FLAG) for flag in flags)


def rows_of(request_key: str, examples: Sequence[ShownExample]) -> list[dict[str, object]]:
    """The examples of one request as rows of the table."""
    return [
        {
            "request_key": request_key,
            "example": number,
            "qa_id": example.qa_id,
            "study_id": example.study_id,
            "frames": [{"volume_id": frame.volume_id, "idx": frame.idx} for frame in example.frames],
        }
        for number, example in enumerate(examples)
    ]


def write_examples(part: Path, rows: Sequence[dict[str, object]]) -> None:
    """Write the examples of a part of `requests`, if any, to a folder next to it."""
    if rows:
        tables.write_part(part.parent / _FOLDER, tables.from_rows(rows, EXAMPLES), EXAMPLES, part.name)


def read_part_examples(part: Path) -> Mapping[str, Sequence[ShownExample]]:
    """The examples of one part of `requests`, by request_key, in the order shown."""
    path = part.parent / _FOLDER / part.name
    if not path.exists():
        return {}
    order = [("request_key", "ascending"), ("example", "ascending")]
    by_request: dict[str, list[ShownExample]] = {}
    for row in tables.read_part(path, EXAMPLES).sort_by(order).to_pylist():
        examples = by_request.setdefault(row["request_key"], [])
        if row["example"] == len(examples):  # arms may ask the same, which is asked once
            frames = tuple(FrameRef(frame["volume_id"], frame["idx"]) for frame in row["frames"])
            examples.append(ShownExample(row["qa_id"], row["study_id"], frames))
    return by_request
