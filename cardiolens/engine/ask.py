"""What goes into an engine and what comes out."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from cardiolens.tasks.legal import FREE, Constraint


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as an engine sees it."""

    request_key: str
    system: str
    text: str  # U+FFFC stands where a frame stands
    frame_keys: tuple[str, ...]
    answer_type: str
    option_keys: tuple[str, ...]
    max_tokens: int
    constraint: Constraint = FREE  # what decoding holds the reply to
    attempt: int = 1
    arm_id: str | None = None  # for a reader that looks at the truth, else None
    qa_id: str | None = None  # the same


@dataclass(frozen=True, slots=True)
class Reply:
    """What an engine answered."""

    text: str
    finish_reason: str
    prompt_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    option_logprobs: dict[str, float] = field(default_factory=dict)
    refused: bool = False  # by the model's host, not in words


Pictures = Callable[[str], np.ndarray]
"""The rendered frame of a key: uint8, (height, width)."""


class EngineDeadError(RuntimeError):
    """The engine is gone; nothing it was working on will be answered."""


class ErrorKind(StrEnum):
    """Why one request could not be answered; the words that people see."""

    KILLED = "killed the engine"
    REJECTED = "not accepted"
    NO_ANSWER = "no usable answer"
    SLOW = "timed out"
    BROKEN = "server failed"


class RequestError(RuntimeError):
    """One request could not be answered; the engine lives."""

    def __init__(self, kind: ErrorKind, said: str) -> None:
        super().__init__(kind, said)
        self.kind = kind
        self.said = said

    def __str__(self) -> str:
        return self.said


class NotAskedError(Exception):
    """The run ends early: the request was not sent to the engine and stays missing."""


class Engine(Protocol):
    """One replica of a model, or a reader that stands for one.

    A RunError from any method ends the run.
    """

    @property
    def mortal(self) -> bool:
        """Whether a request can kill it, so that one which failed before is asked with care."""
        ...

    async def start(self) -> None:
        """Make it ready; called again after its death."""
        ...

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        """Answer one request; EngineDeadError or RequestError where it cannot."""
        ...

    def frames_processed(self) -> int:
        """Frames decoded and run through the image processor so far."""
        ...

    def close(self) -> None:
        """Let go of the machine's resources."""
        ...
