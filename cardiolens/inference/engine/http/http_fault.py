"""Kinds of failure between a request and its reply, and the rule for each kind."""

import email.utils
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus

from cardiolens.base.sanitize import one_line
from cardiolens.inference.engine.ask import ErrorKind
from cardiolens.inference.engine.http.header_lines import HttpAnswer

_EXCERPT = 300  # characters of a server's text in a message


class FaultKind(Enum):
    """Kind of failure; the value completes the sentence "The server ..."."""

    THROTTLED = "throttles requests"
    UNREACHABLE = "cannot be reached"
    BUSY = "fails"
    CUT = "cut the connection"
    SLOW = "did not answer in time"
    MALFORMED = "sent a malformed completion"
    REJECTED = "rejects the request"
    FORBIDDEN = "cannot be used"


@dataclass(frozen=True, slots=True)
class Rule:
    """Consequence of a kind of failure."""

    tries: int  # failures of this kind before the request fails; http.tries limits all kinds together
    ends_run: bool  # True: the run ends, as no request can succeed now; False: only this request fails
    error: ErrorKind  # of the failed request


RULES = {
    FaultKind.THROTTLED: Rule(tries=1000, ends_run=True, error=ErrorKind.BROKEN),
    FaultKind.UNREACHABLE: Rule(tries=1000, ends_run=True, error=ErrorKind.BROKEN),
    FaultKind.BUSY: Rule(tries=1000, ends_run=False, error=ErrorKind.BROKEN),
    FaultKind.CUT: Rule(tries=1000, ends_run=False, error=ErrorKind.BROKEN),
    FaultKind.SLOW: Rule(tries=3, ends_run=False, error=ErrorKind.SLOW),
    # Few tries, because malformed replies are paid for too.
    FaultKind.MALFORMED: Rule(tries=3, ends_run=False, error=ErrorKind.NO_ANSWER),
    FaultKind.REJECTED: Rule(tries=1, ends_run=False, error=ErrorKind.REJECTED),
    FaultKind.FORBIDDEN: Rule(tries=1, ends_run=True, error=ErrorKind.REJECTED),
}


class FaultError(Exception):
    """Failure of one try."""

    def __init__(self, kind: FaultKind, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{kind.value}: {detail}")
        self.kind = kind
        self.retry_after = retry_after  # seconds that the server asked to wait


_REMEDIES = {
    401: "check the key in the variable that http.api_key_env names",
    403: "the key may not use this model or server",
    404: "check http.base_url and http.api_model",
    413: "show fewer frames, or smaller ones (long_side)",
}
_TEMPORARY = (408, 409, 425)
_OUT_OF_MONEY = ("insufficient_quota", "billing_hard_limit_reached")
_FILTERED = ("content_filter", "content_policy_violation")


def fault_of(answer: HttpAnswer) -> FaultError:
    """Return the failure for a reply with a status other than 200."""
    status, error = answer.status, _error(answer)
    detail = f"{status} {_phrase(status)}: {error['message'] or 'without a message'}"
    remedy = f"; {_REMEDIES[status]}" if status in _REMEDIES else ""
    if 300 <= status < 400:
        target = answer.headers.get("location", "nowhere")
        return FaultError(
            FaultKind.FORBIDDEN, f"{status} redirects to {target}, which is not followed; set http.base_url"
        )
    if status == 429 and error["code"] in _OUT_OF_MONEY:
        return FaultError(FaultKind.FORBIDDEN, f"{detail}; the account has no credit left")
    retry_after = read_retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
    if status == 429:
        return FaultError(FaultKind.THROTTLED, detail, retry_after)
    if status >= 500 or status in _TEMPORARY:
        return FaultError(FaultKind.BUSY, detail, retry_after)
    if status in (401, 403, 404):
        return FaultError(FaultKind.FORBIDDEN, f"{detail}{remedy}")
    if "context" in error["message"] and ("length" in error["message"] or "tokens" in error["message"]):
        remedy = "; set max_model_len to the server's, and source or image_tokens, so that the plan knows"
    return FaultError(FaultKind.REJECTED, f"{detail}{remedy}")


def is_filtered(answer: HttpAnswer) -> bool:
    """Return whether a server's content filter rejected the request: a refusal, not a failure."""
    return answer.status == 400 and _error(answer)["code"] in _FILTERED


def _error(answer: HttpAnswer) -> dict[str, str]:
    """Read the code and message of an error, in any of the forms that servers use."""
    if answer.wrong is not None:
        return {"code": "", "message": answer.beginning}
    tree = answer.tree
    tree = tree[0] if isinstance(tree, list) and tree else tree
    error = tree.get("error", tree) if isinstance(tree, dict) else {}
    if not isinstance(error, dict):
        return {"code": "", "message": one_line(str(error), _EXCERPT)}
    message = error.get("message") or error.get("detail") or ""
    return {"code": str(error.get("code") or error.get("type")), "message": one_line(str(message), _EXCERPT)}


def _phrase(status: int) -> str:
    return HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown status"


_DOUBLINGS = 30  # at most: any first wait then exceeds the longest, and 2.0 ** tries cannot overflow


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double with each try up to `longest`, each shortened at random by up to a half."""

    first: float  # seconds
    longest: float = 60.0

    def wait(self, tries: int, draw: float, retry_after: float | None = None) -> float:
        """Return the seconds to wait after `tries` tries; never less than the server asked for.

        `draw` is a random number in 0..1, so that requests that failed together are not retried together.
        """
        doubled = self.first * 2.0 ** min(tries - 1, _DOUBLINGS)
        delay = min(self.longest, doubled) * (1 - draw / 2)
        return delay if retry_after is None else max(delay, retry_after * (1 + draw / 10))


def read_retry_after(value: str | None, now: datetime) -> float | None:
    """Read the seconds of a `Retry-After` header, a number or a date (RFC 9110, 10.2.3); else None."""
    if value is None:
        return None
    try:
        return max(0.0, float(value)) if float(value) < float("inf") else None
    except ValueError:
        pass
    try:
        return max(0.0, (email.utils.parsedate_to_datetime(value) - now).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None
