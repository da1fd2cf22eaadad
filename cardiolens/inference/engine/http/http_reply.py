"""Replies of a server and its faults: what is read from them, and which are tried again."""

import email.utils
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from http import HTTPStatus
from typing import Annotated

from pydantic import AliasPath, BaseModel, Field, JsonValue, ValidationError

from cardiolens.base.sanitize import blotted, one_line, several_lines
from cardiolens.config.http import HttpSpec
from cardiolens.inference.engine.ask import Ask, ErrorKind, Reply
from cardiolens.inference.engine.decoding import TokenStep, letter_logprobs, one_letter

_EXCERPT = 300  # characters of a server's text in a message


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """HTTP response to one request; every text in it is sanitised."""

    status: int
    headers: dict[str, str]  # names in lower case
    tree: JsonValue  # the body; None if the body is not JSON
    beginning: str  # of the body, for messages


def sanitised_answer(
    status: int, headers: Mapping[str, str], body: bytes, secrets: Collection[str] = ()
) -> HttpAnswer:
    """Return a response with sanitised headers and body, the secrets that the server was sent redacted."""
    lines = {quoted(name.lower(), secrets): quoted(value, secrets) for name, value in headers.items()}
    try:
        tree = _plain(json.loads(body), secrets)
    except (ValueError, RecursionError):  # not JSON, not UTF-8, a number of thousands of digits, or too deep
        tree = None
    return HttpAnswer(status, lines, tree, quoted(body.decode(errors="replace"), secrets))


def quoted(text: str, secrets: Collection[str]) -> str:
    """Return a server's text for a message: one line, with secrets redacted before the text is cut."""
    return one_line(blotted(text, secrets), _EXCERPT)


def _plain(tree: JsonValue, secrets: Collection[str]) -> JsonValue:
    if isinstance(tree, str):
        return several_lines(blotted(tree, secrets))
    if isinstance(tree, list):
        return [_plain(entry, secrets) for entry in tree]
    if isinstance(tree, dict):
        return {str(_plain(name, secrets)): _plain(value, secrets) for name, value in tree.items()}
    return tree


class FaultKind(Enum):
    """Kind of failure: its text completes the sentence "The server ...", the rest is its consequence."""

    THROTTLED = "throttles requests", 1000, True, ErrorKind.BROKEN
    UNREACHABLE = "cannot be reached", 1000, True, ErrorKind.BROKEN
    BUSY = "fails", 1000, False, ErrorKind.BROKEN
    CUT = "cut the connection", 1000, False, ErrorKind.BROKEN
    SLOW = "did not answer in time", 3, False, ErrorKind.SLOW
    # Few tries, because malformed replies are paid for too.
    MALFORMED = "sent a malformed completion", 3, False, ErrorKind.NO_ANSWER
    REJECTED = "rejects the request", 1, False, ErrorKind.REJECTED
    FORBIDDEN = "cannot be used", 1, True, ErrorKind.REJECTED

    def __init__(self, text: str, tries: int, ends_run: bool, error: ErrorKind) -> None:
        self.text = text
        self.tries = tries  # failures of this kind before the request fails; tries limits all kinds
        self.ends_run = ends_run  # as no request can succeed now; else only this request fails
        self.error = error  # of the failed request


class FaultError(Exception):
    """Failure of one try."""

    def __init__(self, kind: FaultKind, detail: str, retry_after: float | None = None) -> None:
        super().__init__(f"{kind.text}: {detail}")
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


def fault_in(answer: HttpAnswer) -> FaultError:
    """Return the failure for a reply with a status other than 200."""
    status = answer.status
    code, message = _error(answer)
    phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "unknown status"
    detail = f"{status} {phrase}: {message or 'without a message'}"
    if 300 <= status < 400:
        target = answer.headers.get("location", "nowhere")
        return FaultError(
            FaultKind.FORBIDDEN, f"{status} redirects to {target}, which is not followed; set http.base_url"
        )
    if status == 429 and code in _OUT_OF_MONEY:
        return FaultError(FaultKind.FORBIDDEN, f"{detail}; the account has no credit left")
    if status == 429 or status >= 500 or status in _TEMPORARY:
        kind = FaultKind.THROTTLED if status == 429 else FaultKind.BUSY
        return FaultError(
            kind, detail, read_retry_after(answer.headers.get("retry-after"), datetime.now(UTC))
        )
    remedy = f"; {_REMEDIES[status]}" if status in _REMEDIES else ""
    if status in (401, 403, 404):
        return FaultError(FaultKind.FORBIDDEN, f"{detail}{remedy}")
    if "context" in message and ("length" in message or "tokens" in message):
        remedy = "; set max_model_len to the server's, and source or image_tokens, so that the plan knows"
    return FaultError(FaultKind.REJECTED, f"{detail}{remedy}")


def is_filtered(answer: HttpAnswer) -> bool:
    """Return whether a server's content filter rejected the request: a refusal, not a failure."""
    return answer.status == 400 and _error(answer)[0] in _FILTERED


def _error(answer: HttpAnswer) -> tuple[str, str]:
    """Read the code and message of an error, in any of the forms that servers use."""
    tree = answer.tree[0] if isinstance(answer.tree, list) and answer.tree else answer.tree
    error = tree.get("error", tree) if isinstance(tree, dict) else answer.beginning
    if not isinstance(error, dict):
        return "", one_line(str(error), _EXCERPT)
    message = error.get("message") or error.get("detail") or ""
    return str(error.get("code") or error.get("type")), one_line(str(message), _EXCERPT)


_LONGEST_WAIT = 60.0  # seconds between tries, unless the server asks for more


def wait_seconds(first: float, tries: int, draw: float, retry_after: float | None = None) -> float:
    """Return the seconds after `tries` tries: doubled each time, never less than the server asked for.

    `draw` is a random number in 0..1, so that requests that failed together are not retried together.
    """
    delay = min(_LONGEST_WAIT, first * 2.0 ** min(tries - 1, 30)) * (1 - draw / 2)
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


_NEVER = -9999.0  # servers send this log-probability instead of minus infinity
_ROUNDING = 1e-3  # rounding may put the log-probability of certainty this far above zero
_LONGEST_NAME = 80  # characters of a model's name, or of a finish reason, in a message
_LONGEST_REASON = 60  # characters of a finish reason as stored; reasons in use have at most 14
_LONGEST_TOKEN = 128  # characters; vocabularies have no longer token

Count = Annotated[int, Field(ge=0, lt=2**31)]


class _Token(BaseModel):
    token: str
    logprob: float


class _Place(BaseModel):
    token: str = ""
    top_logprobs: list[_Token] = []


class _Choice(BaseModel):
    content: Annotated[str | None, Field(validation_alias=AliasPath("message", "content"))] = None
    reasoning: Annotated[str | None, Field(validation_alias=AliasPath("message", "reasoning"))] = None
    earlier: Annotated[str | None, Field(validation_alias=AliasPath("message", "reasoning_content"))] = None
    refusal: Annotated[str | None, Field(validation_alias=AliasPath("message", "refusal"))] = None
    finish_reason: str | None = None
    places: Annotated[list[_Place] | None, Field(validation_alias=AliasPath("logprobs", "content"))] = None

    @property
    def refused(self) -> bool:
        return self.refusal is not None or self.finish_reason == "content_filter"


class TokenUsage(BaseModel):
    """Token counts of one reply."""

    prompt_tokens: Count
    completion_tokens: Count
    cached: Annotated[
        Count | None, Field(validation_alias=AliasPath("prompt_tokens_details", "cached_tokens"))
    ] = None


class _Used(BaseModel):
    usage: TokenUsage


class _Completion(_Used):
    model: str
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]


def read_usage(answer: HttpAnswer) -> TokenUsage | None:
    """Read the token counts of a reply, even if the rest of it is unusable; None without counts."""
    try:
        return _Used.model_validate(answer.tree).usage
    except ValidationError:
        return None


def read_reply(answer: HttpAnswer, http: HttpSpec, ask: Ask) -> Reply:
    """Read a completion as a Reply; FaultError if it is malformed or from another model."""
    try:
        completion = _Completion.model_validate(answer.tree)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        wrong = f"{'.'.join(map(str, first['loc']))}: {first['msg']}" if first["loc"] else "no JSON object"
        raise FaultError(FaultKind.MALFORMED, f"{wrong}, in {answer.beginning!r}") from None
    if completion.model not in (http.api_model, *http.api_aliases):
        name = one_line(completion.model, _LONGEST_NAME)
        raise FaultError(
            FaultKind.FORBIDDEN,
            f"asked for model {http.api_model!r}, answered by {name!r}; if that is the same one, "
            f"declare http.api_aliases: [{name}]",
        )
    (choice,), usage = completion.choices, completion.usage
    most = _LONGEST_TOKEN * ask.max_tokens
    text = _text(choice, most)
    reasoning = (choice.reasoning or choice.earlier or "")[:most] or None
    scored = one_letter(ask) and not reasoning
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=one_line(choice.finish_reason or "unknown", _LONGEST_REASON),
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached or 0,
        output_tokens=usage.completion_tokens,
        option_logprobs=letter_logprobs(_steps(choice), text, ask.constraint.legal) if scored else {},
        refused=choice.refused,
    )


def _text(choice: _Choice, most: int) -> str:
    """Return the text of a choice; empty if all tokens went into thinking or a filter removed the text.

    FaultError for more than `most` characters, which no reply within the token limit can have.
    """
    if choice.content is None and not choice.refused and choice.finish_reason != "length":
        reason = one_line(choice.finish_reason or "none", _LONGEST_NAME)
        raise FaultError(FaultKind.MALFORMED, f"a choice without text (finish_reason {reason!r})")
    text = choice.content or choice.refusal or ""
    if len(text) > most:
        raise FaultError(FaultKind.MALFORMED, f"{len(text):,} characters; expected at most {most:,}")
    return text


def _steps(choice: _Choice) -> list[TokenStep]:
    """Return the tokens of a reply; without alternatives that are impossible, or more than certain."""
    return [
        TokenStep(
            place.token,
            {
                entry.token: min(entry.logprob, 0.0)
                for entry in place.top_logprobs
                if _NEVER < entry.logprob <= _ROUNDING
            },
        )
        for place in choice.places or ()
    ]
