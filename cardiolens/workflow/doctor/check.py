"""One line of an examination: what was looked at, and what it is like."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from cardiolens.base.errors import InputError, RunError
from cardiolens.runtime.stopping import StoppedError

State = Literal["ok", "note", "fix"]
"""`note`: works, but there is something to know; `fix`: a sweep would fail."""


@dataclass(frozen=True, slots=True)
class Check:
    """What was looked at, and what it is like; with a remedy where it is not as a sweep needs it."""

    subject: str
    state: State
    text: str


def check_of(subject: str, look: Callable[[], "str | Check"]) -> Check:
    """What `look` returns, `ok` if it is text; `fix` with whatever error it raises.

    A look runs foreign code on files in any state, and no error of one may hide what the others find.
    """
    try:
        seen = look()
    except (InputError, RunError) as error:
        return Check(subject, "fix", " ".join(str(error).split()))
    except StoppedError:
        raise
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        return Check(subject, "fix", f"{place}{error.strerror or error}; check permissions, or name another")
    except Exception as error:  # noqa: BLE001 - see above
        return Check(subject, "fix", " ".join(f"{type(error).__name__}: {error}".split()))
    return Check(subject, "ok", seen) if isinstance(seen, str) else seen
