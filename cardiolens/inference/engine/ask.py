"""The interface of an engine: requests in, replies or errors out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

import numpy as np

from cardiolens.protocol.tasks.legal import FREE, Constraint

FRAMES = "frames"  # answer type of a request in which a reader names the frames that it wants to see


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as an engine sees it: it tells neither patient nor study."""

    request_key: str
    system: str
    text: str  # U+FFFC marks the place of each frame
    frame_keys: tuple[str, ...]  # in the order of those places
    answer_type: str
    option_keys: tuple[str, ...]
    max_tokens: int
    constraint: Constraint = FREE  # the legal replies that decoding enforces
    attempt: int = 1
    arm_id: str | None = None  # set for readers of the truth and for people's readings only
    qa_id: str | None = None  # as arm_id
    seed: int | None = None  # of one of several samples; None: the model's, as configured
    temperature: float | None = None  # as seed


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
    seconds: float | None = None  # that the answer took, where the time until it came is another


Pictures = Callable[[str], np.ndarray]
"""Return the rendered frame of a key: uint8, (height, width) of a grey one, (height, width, 3) of RGB."""


class EngineDeadError(RuntimeError):
    """The engine is gone; nothing it was working on will be answered."""


class ErrorKind(StrEnum):
    """Reason why one request could not be answered; the value is the text that people see."""

    KILLED = "killed the engine"
    REJECTED = "not accepted"
    FAILED = "failed in the engine"
    NO_ANSWER = "no usable answer"
    SLOW = "timed out"
    BROKEN = "server failed"


class RequestError(RuntimeError):
    """One request could not be answered; the engine lives."""

    def __init__(self, kind: ErrorKind, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        self.message = message

    def __str__(self) -> str:
        return self.message


class NotAskedError(Exception):
    """The run ends early: the request was not sent to the engine and stays missing."""


class FrameWork(NamedTuple):
    """Work of an engine on frames; neither a reader nor a server that hides it has any encoder runs."""

    processed: int = 0  # frames decoded and run through the image processor
    encoded: int = 0  # runs of the vision encoder, one per frame


class Engine(Protocol):
    """One replica of a model, or a simulated reader in its place.

    A RunError from any method ends the run.
    """

    @property
    def mortal(self) -> bool:
        """True if a request can kill the engine; a request that failed before is then asked alone."""
        ...

    async def start(self) -> None:
        """Make the engine ready; called again after its death."""
        ...

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        """Answer one request.

        Raises EngineDeadError if the engine died, RequestError if only this request cannot be answered.
        """
        ...

    def frames(self) -> FrameWork:
        """Work on frames so far."""
        ...

    def close(self) -> None:
        """Release the machine's resources."""
        ...
