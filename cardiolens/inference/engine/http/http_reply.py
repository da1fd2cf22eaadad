"""Read a server's completion as a Reply; FaultError if it is incomplete or from another model."""

import math
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from cardiolens.base.sanitize import one_line
from cardiolens.config.http import HttpSpec
from cardiolens.inference.engine.ask import Ask, Reply
from cardiolens.inference.engine.decoding import one_letter
from cardiolens.inference.engine.http.header_lines import HttpAnswer
from cardiolens.inference.engine.http.http_fault import FaultError, FaultKind
from cardiolens.inference.engine.option_probabilities import TokenStep, letter_logprobs

_NEVER = -9999.0  # servers send this log-probability instead of minus infinity
_ROUNDING = 1e-3  # rounding may put the log-probability of certainty this far above zero
_EXCERPT = 200  # characters of a body in a message
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


class _Logprobs(BaseModel):
    content: list[_Place] | None = None


class _Message(BaseModel):
    content: str | None = None
    reasoning: str | None = None  # vLLM since 0.18 and others
    reasoning_content: str | None = None  # earlier ones, and servers of other makers
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Details(BaseModel):
    cached_tokens: Count | None = None


class TokenUsage(BaseModel):
    """Token counts of one reply."""

    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: _Details | None = None


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
        wrong = answer.wrong or _first(error)
        raise FaultError(
            FaultKind.MALFORMED, f"{wrong}, in {one_line(answer.beginning, _EXCERPT)!r}"
        ) from None
    if completion.model not in (http.api_model, *http.api_aliases):
        name = one_line(completion.model, _LONGEST_NAME)
        raise FaultError(
            FaultKind.FORBIDDEN,
            f"asked for model {http.api_model!r}, answered by {name!r}; if that is the same one, "
            f"declare http.api_aliases: [{name}]",
        )
    (choice,) = completion.choices
    details = completion.usage.prompt_tokens_details
    text = _text(choice, _LONGEST_TOKEN * ask.max_tokens)
    reasoning = _reasoning(choice, _LONGEST_TOKEN * ask.max_tokens)
    return Reply(
        text=text,
        reasoning=reasoning,
        finish_reason=one_line(choice.finish_reason or "unknown", _LONGEST_REASON),
        prompt_tokens=completion.usage.prompt_tokens,
        cached_tokens=(details and details.cached_tokens) or 0,
        output_tokens=completion.usage.completion_tokens,
        option_logprobs=letter_logprobs(_steps(choice), text, ask.constraint.legal)
        if one_letter(ask) and not reasoning
        else {},
        refused=_is_refused(choice),
    )


def _is_refused(choice: _Choice) -> bool:
    return choice.message.refusal is not None or choice.finish_reason == "content_filter"


def _text(choice: _Choice, most: int) -> str:
    """Return the text of a choice; empty if all tokens went into thinking or a filter removed the text.

    FaultError for more than `most` characters, which no reply within the token limit can have.
    """
    text = choice.message.content
    if text is None and not _is_refused(choice) and choice.finish_reason != "length":
        reason = one_line(choice.finish_reason or "none", _LONGEST_NAME)
        raise FaultError(FaultKind.MALFORMED, f"a choice without text (finish_reason {reason!r})")
    text = text or choice.message.refusal or ""
    if len(text) > most:
        raise FaultError(FaultKind.MALFORMED, f"{len(text):,} characters; expected at most {most:,}")
    return text


def _reasoning(choice: _Choice, most: int) -> str | None:
    """Return the reasoning that a server separates from the text, as far as the token limit allows it."""
    reasoning = choice.message.reasoning or choice.message.reasoning_content
    return reasoning[:most] if reasoning else None


def _steps(choice: _Choice) -> list[TokenStep]:
    places = (choice.logprobs.content if choice.logprobs else None) or []
    return [
        TokenStep(place.token, {entry.token: _logprob(entry.logprob) for entry in place.top_logprobs})
        for place in places
    ]


def _logprob(value: float) -> float:
    """Convert a log-probability: values up to _NEVER to minus infinity, values above zero to NaN."""
    if value > _ROUNDING:
        return math.nan
    return min(value, 0.0) if value > _NEVER else -math.inf


def _first(error: ValidationError) -> str:
    detail = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, detail['loc'])) or 'JSON'}: {detail['msg']}"
