"""A request: its key, its place in the plan's tables, and their columns."""

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from cardiolens.base.digest import DIGEST_BYTES, digest_of
from cardiolens.config.model import Sampling
from cardiolens.inference.plan.planned_study import FrameRef, ShownExample
from cardiolens.inference.plan.planned_study import rows_of as example_rows
from cardiolens.protocol.dialogue.chain import Chain, Samples, Steps, row_of, rows_of
from cardiolens.protocol.dialogue.frame_requests import Offer
from cardiolens.protocol.select.selection import Frame
from cardiolens.protocol.tasks.legal import Constraint, constraint_of
from cardiolens.storage import tables
from cardiolens.storage.schemas import REQUESTS

if TYPE_CHECKING:
    from hashlib import blake2b as Hash  # noqa: N812


def hash_model(model_key: str, sampling: Sampling) -> "Hash":
    """Start a hash with the model and its sampling; copies continue with frames and question."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    _add(state, model_key, digest_of(sampling.model_dump(mode="json")))
    return state


def hash_frames(digest: "Hash", system: str, frames_text: str, frame_keys: tuple[str, ...]) -> "Hash":
    """Copy a hash and add the text up to the question; each frame enters by its key."""
    state = digest.copy()
    _add(state, system, frames_text, *frame_keys)
    return state


def request_key(shown_state: "Hash", question_text: str, *decoding: str) -> str:
    """Return the key of one request: 32 hex digits.

    `decoding` is everything else that decides the answer: legal replies, token limit, replicate; also the arm
    and the question if the reader looks at the truth or samples without a seed.
    """
    state = shown_state.copy()
    _add(state, question_text, *decoding)
    return state.hexdigest()


def _add(state: "Hash", *texts: str) -> None:
    """Add texts so that two different lists of texts never add the same bytes."""
    encoded = [text.encode() for text in texts]
    state.update(b"".join([piece for text in encoded for piece in (len(text).to_bytes(8, "little"), text)]))


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


_SCALARS = tuple(name for name in REQUESTS.names if name != "frames")
_scalars_of = attrgetter(*_SCALARS)


class RequestColumns:
    """A growing part of the `requests` table."""

    def __init__(self) -> None:
        self._columns: tuple[list[object], ...] = tuple([] for _ in _SCALARS)
        self._frames: list[int] = []  # per row: index of its frame list in `_distinct`
        self._distinct: dict[tuple[Frame | FrameRef, ...], int] = {}
        self.stages: list[dict[str, object]] = []  # rows of the `stages` table, for requests that are chains
        self.choices: list[dict[str, object]] = []  # rows of the `choices` table
        self.offers: dict[str, Offer] = {}  # offers of the choices, by key
        self.examples: list[dict[str, object]] = []  # rows of the `examples` table
        self._most_chosen = 0  # frames of a chain or with examples, which `_distinct` does not hold

    def __len__(self) -> int:
        return len(self._frames)

    def add(self, request: Request) -> None:
        """Append one request."""
        self._frames.append(self._distinct.setdefault(request.frames, len(self._distinct)))
        for column, value in zip(self._columns, _scalars_of(request), strict=True):
            column.append(value)

    def add_chain(self, request_key: str, chain: Chain) -> None:
        """Append the chain that a request represents."""
        if isinstance(chain, Steps | Samples):
            self.stages += rows_of(request_key, chain.stages)
        else:
            self.choices.append(row_of(request_key, chain))
            self.offers[chain.offer.key] = chain.offer
            self._most_chosen = max(self._most_chosen, chain.most_frames)

    def add_examples(self, request: Request, examples: Sequence[ShownExample]) -> None:
        """Append the examples that a request shows before its own frames."""
        self.examples += example_rows(request.request_key, examples)
        n_frames = len(request.frames) + sum(len(example.frames) for example in examples)
        self._most_chosen = max(self._most_chosen, n_frames)

    @property
    def most_frames(self) -> int:
        """The largest number of frames that a request shows or lets a reader choose; 0 without frames."""
        return max((self._most_chosen, *map(len, self._distinct)))

    def status_counts(self) -> Counter[str]:
        """Count the requests of each status."""
        return Counter(map(str, self._columns[_SCALARS.index("status")]))

    def table(self) -> pa.Table:
        """Return the collected rows as a table."""
        arrays = {
            name: pa.array(column, type=REQUESTS.field(name).type)
            for name, column in zip(_SCALARS, self._columns, strict=True)
        }
        arrays["frames"] = self._frame_lists()
        return pa.Table.from_arrays([arrays[name] for name in REQUESTS.names], schema=REQUESTS)

    def _frame_lists(self) -> pa.Array:
        """Build the column of frame lists: store each distinct list once, then repeat by index."""
        flat = [frame for frames in self._distinct for frame in frames]
        offsets = [0]
        for frames in self._distinct:
            offsets.append(offsets[-1] + len(frames))
        references = pa.StructArray.from_arrays(
            [
                pa.array([frame.volume_id for frame in flat], pa.string()),
                pa.array([frame.idx for frame in flat], pa.int32()),
            ],
            names=["volume_id", "idx"],
        )
        lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), references)
        return lists.take(pa.array(self._frames, pa.int32())).cast(REQUESTS.field("frames").type)
