"""The next request of a chain, and the marks that stand for values not known yet."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from cardiolens.protocol.tasks.legal import Constraint
from cardiolens.storage.schemas import FRAME

_OPEN, _CLOSE = "\ufdd0", "\ufdd1"  # Unicode noncharacters, which occur in no ordinary text
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")


class Place(NamedTuple):
    """A frame of a study by its canonical index."""

    volume_id: str
    idx: int


class PendingRequest(NamedTuple):
    """The request of a stage, derived from the declaration of its chain and the replies so far."""

    request_key: str
    prompt: str
    max_tokens: int
    frames: tuple[Place, ...] | None = None  # None: those of the chain's row in `requests`
    constraint: Constraint | None = None  # None: the one of the chain's row, for its answer
    asks_for_frames: bool = False
    seed: int | None = None  # of a sample; None: the model's
    temperature: float | None = None  # of a sample; None: the model's


def mark(number: int) -> str:
    """The mark that stands for the value of a number, such as the reply of a stage."""
    return f"{_OPEN}{number}{_CLOSE}"


def fill(text: str, values: Sequence[str]) -> str:
    """Replace the marks of a text by values, which must contain no mark and no frame character."""
    return _MARK.sub(lambda match: values[int(match[1])], text)


def without_marks(text: str) -> str:
    """Remove the characters of marks and frames from untrusted text."""
    return text.replace(FRAME, "").replace(_OPEN, "").replace(_CLOSE, "")
