"""What can go wrong between a request and its reply, and what is done about each kind."""

import email.utils
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus

from cardiolens.engine.ask import ErrorKind

_MAX_CHARACTERS = 300  # of a server's words that a message repeats
_DOUBLINGS = 30  # beyond, any first wait is longer than the longest
_REMEDIES = {
    401: "check the key in the variable that http.api_key_env names",
    403: "the key may not use this model or server",
    404: "check http.base_url and http.api_model",
    413: "show fewer frames, or smaller ones (long_side)",
}
_TEMPORARY = (408, 409, 425)
_OUT_OF_MONEY = ("insufficient_quota", "billing_hard_limit_reached")
_FILTERED = ("content_filter", "content_policy_violation")


class Kind(Enum):
    """A kind of failure."""

    THROTTLED = "says that it gets too much"
    UNREACHABLE = "cannot be reached"
    BUSY = "fails"
    CUT = "cut the connection"
    SLOW = "did not answer in time"
    MALFORMED = "answered with what is no completion"
    REJECTED = "rejects the request"
    FORBIDDEN = "cannot be used"


@dataclass(frozen=True, slots=True)
class Rule:
    """What follows from a kind."""

    tries: int  # that fail so, at most; fewer in all where the configuration says so
    ends_run: bool  # no request could be answered now; otherwise one request was not
    error: ErrorKind  # of that one


RULES = {
    Kind.THROTTLED: Rule(tries=1000, ends_run=True, error=ErrorKind.BROKEN),
    Kind.UNREACHABLE: Rule(tries=1000, ends_run=True, error=ErrorKind.BROKEN),
    Kind.BUSY: Rule(tries=1000, ends_run=False, error=ErrorKind.BROKEN),
    Kind.CUT: Rule(tries=1000, ends_run=False, error=ErrorKind.BROKEN),
    Kind.SLOW: Rule(tries=3, ends_run=False, error=ErrorKind.SLOW),
    # Each of these was paid for.
    Kind.MALFORMED: Rule(tries=3, ends_run=False, error=ErrorKind.NO_ANSWER),
    Kind.REJECTED: Rule(tries=1, ends_run=False, error=ErrorKind.REJECTED),
    Kind.FORBIDDEN: Rule(tries=1, ends_run=True, error=ErrorKind.REJECTED),
}


class FaultError(Exception):
    """One try failed."""

    def __init__(self, kind: Kind, said: str, retry_after: float | None = None) -> None:
        super().__init__(f"{kind.value}: {said}")
        self.kind = kind
        self.retry_after = retry_after  # seconds that the server asked to wait


def fault_of(status: int, headers: dict[str, str], body: bytes) -> FaultError:
    """The failure that a reply with another status than 200 tells of."""
    error = _error(body)
    said = f"{status} {_phrase(status)}: {error['message'] or 'without a word'}"
    remedy = f"; {_REMEDIES[status]}" if status in _REMEDIES else ""
    if 300 <= status < 400:
        where = headers.get("location", "nowhere")
        return FaultError(
            Kind.FORBIDDEN, f"{status} redirects to {where}, which is not followed; set http.base_url"
        )
    if status == 429 and error["code"] in _OUT_OF_MONEY:
        return FaultError(Kind.FORBIDDEN, f"{said}; the account has no credit left")
    retry_after = read_retry_after(headers.get("retry-after"), datetime.now(UTC))
    if status == 429:
        return FaultError(Kind.THROTTLED, said, retry_after)
    if status >= 500 or status in _TEMPORARY:
        return FaultError(Kind.BUSY, said, retry_after)
    if status in (401, 403, 404):
        return FaultError(Kind.FORBIDDEN, f"{said}{remedy}")
    if "context" in error["message"] and ("length" in error["message"] or "tokens" in error["message"]):
        remedy = "; set max_model_len to the server's, and source or image_tokens, so that the plan knows"
    return FaultError(Kind.REJECTED, f"{said}{remedy}")


def is_filtered(status: int, body: bytes) -> bool:
    """Whether a server's content filter turned the request away: a refusal, not a failure."""
    return status == 400 and _error(body)["code"] in _FILTERED


def _error(body: bytes) -> dict[str, str]:
    """Code and message of an error, in the several forms that servers give it."""
    try:
        tree: object = json.loads(body)
    except ValueError:
        return {"code": "", "message": body.decode(errors="replace")[:_MAX_CHARACTERS]}
    tree = tree[0] if isinstance(tree, list) and tree else tree
    error = tree.get("error", tree) if isinstance(tree, dict) else {}
    if not isinstance(error, dict):
        return {"code": "", "message": str(error)[:_MAX_CHARACTERS]}
    message = error.get("message") or error.get("detail") or ""
    return {"code": str(error.get("code") or error.get("type")), "message": str(message)[:_MAX_CHARACTERS]}


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown status"


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double from try to try, up to a longest, each shortened by up to a half at random."""

    first: float  # seconds
    longest: float = 60.0

    def wait(self, tries: int, draw: float, retry_after: float | None = None) -> float:
        """Seconds to wait after so many tries; never less than the server asked for.

        `draw` is a random number of 0..1, so that requests that failed together do not come back together.
        """
        doubled = self.first * 2.0 ** min(tries - 1, _DOUBLINGS)
        own = min(self.longest, doubled) * (1 - draw / 2)
        return own if retry_after is None else max(own, retry_after * (1 + draw / 10))


def read_retry_after(value: str | None, now: datetime) -> float | None:
    """Seconds that a `Retry-After` header asks for: a number, or a date (RFC 9110, 10.2.3); else None."""
    if value is None:
        return None
    try:
        return max(0.0, float(value)) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError):
        return None
