"""One line of an examination: what was looked at, and what it is like."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cardiolens.base.errors import InputError, RunError

State = Literal["ok", "note", "fix"]
"""`note`: works, but there is something to know; `fix`: a sweep would fail."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what it is like; with a remedy where it is not as a sweep needs it."""

    subject: str
    state: State
    text: str


def check_of(subject: str, look: Callable[[], str]) -> Check:
    """`ok` with what `look` returns, `fix` with its InputError or RunError."""
    try:
        return Check(subject, "ok", look())
    except (InputError, RunError) as error:
        return Check(subject, "fix", " ".join(str(error).split()))
