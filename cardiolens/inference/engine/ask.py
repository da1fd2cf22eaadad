"""The interface of an engine: requests in, replies or errors out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Generic, NamedTuple, TypeVar

import numpy as np

from cardiolens.protocol.tasks.legal import FREE, Constraint

FRAMES = "frames"  # answer type of a request in which a reader names the frames to see


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as an engine sees it, without patient and study."""

    request_key: str
    system: str
    text: str  # U+FFFC marks the position of each frame; side by side: of the frames of a video
    frame_keys: tuple[str, ...]  # in the order of the marks
    answer_type: str
    option_keys: tuple[str, ...]
    max_tokens: int
    constraint: Constraint = FREE  # the legal replies, enforced by decoding
    attempt: int = 1
    arm_id: str | None = None  # set only for readers of the truth and people's readings
    qa_id: str | None = None  # as arm_id
    seed: int | None = None  # set for one of several samples; None: the model's configured seed
    temperature: float | None = None  # as seed


class Numerics(NamedTuple):
    """What decides how an engine rounds, beside its weights; None where it is unknown."""

    engine: str | None = None  # with its version
    device: str | None = None  # type of the GPUs, or cpu
    attention_backend: str | None = None
    tensor_parallel: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer of an engine to one Ask, with token counts."""

    text: str
    finish_reason: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    option_logprobs: dict[str, float] = field(default_factory=dict)  # by displayed letter
    refused: bool = False  # by a filter of the model's host; a refusal in words is an ordinary reply
    seconds: float | None = None  # duration of the answer; None: the time until the reply came
    reasoning: str | None = None  # where the engine separates it from the text
    numerics: Numerics = field(default_factory=Numerics)


Pictures = Callable[[str], np.ndarray]
"""Returns the rendered frame of a key: uint8, (height, width) if grey, (height, width, 3) if RGB."""


class EngineDeadError(RuntimeError):
    """The engine died; none of its requests in flight will be answered."""


class ErrorKind(StrEnum):
    """Reason why one request could not be answered; the value is the text for users."""

    KILLED = "killed the engine"
    REJECTED = "not accepted"
    FAILED = "failed in the engine"
    NO_ANSWER = "no usable answer"
    SLOW = "timed out"
    BROKEN = "server failed"


class RequestError(RuntimeError):
    """One request could not be answered; the engine is still alive."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class NotAskedError(Exception):
    """The run is stopping: the request was not sent to the engine and stays missing."""


class FrameWork(NamedTuple):
    """An engine's work on frames, where a video counts as one.

    Simulated readers and servers report no encoder runs.
    """

    processed: int = 0  # frames decoded and run through the image processor
    encoded: int = 0  # runs of the vision encoder, one per frame or video


class Engine:
    """One replica of a model, or a simulated reader in its place; what is not overridden does nothing.

    A RunError from any method ends the run.
    """

    async def start(self) -> None:
        """Make the engine ready; called again after the engine died."""

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        """Answer one request.

        Raises EngineDeadError if the engine died, RequestError if only this request cannot be answered.
        """
        raise NotImplementedError

    def frames(self) -> FrameWork:
        """Return the work on frames so far."""
        return FrameWork()

    def close(self) -> None:
        """Release the machine's resources."""


_Entry = TypeVar("_Entry")


class FrameCache(Generic[_Entry]):
    """What an engine makes of frames, by key; of more than `most_bytes`, what was used last."""

    def __init__(
        self, make: Callable[[np.ndarray], _Entry], n_bytes: Callable[[_Entry], int], most_bytes: int
    ) -> None:
        self.made = 0  # so often so far
        self._make, self._n_bytes, self._room = make, n_bytes, most_bytes
        self._kept: dict[str, _Entry] = {}  # the most recently used last

    def of(self, key: str, pictures: Pictures) -> _Entry:
        """Return what is made of the frame of a key."""
        entry = self._kept.pop(key, None)
        if entry is None:
            entry = self._make(pictures(key))
            self.made += 1
            self._room -= self._n_bytes(entry)
        self._kept[key] = entry
        while self._room < 0 and len(self._kept) > 1:
            self._room += self._n_bytes(self._kept.pop(next(iter(self._kept))))
        return entry
