"""Reading a server's completion: whole, by the model that was asked, or a named fault."""

import math
from typing import Annotated

from pydantic import BaseModel, Field, ValidationError

from cardiolens.config.http import HttpSpec
from cardiolens.engine.ask import Ask, Reply
from cardiolens.engine.decoding import one_letter, option_logprobs
from cardiolens.engine.http.fault import FaultError, FaultKind

_NEVER = -9999.0  # written by servers where a log-probability is minus infinity
_SAID = 200

Count = Annotated[int, Field(ge=0, lt=2**31)]


class _Token(BaseModel):
    token: str
    logprob: float


class _Place(BaseModel):
    top_logprobs: list[_Token] = []


class _Logprobs(BaseModel):
    content: list[_Place] | None = None


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None
    logprobs: _Logprobs | None = None


class _Details(BaseModel):
    cached_tokens: Count | None = None


class TokenUsage(BaseModel):
    """Tokens that one reply took."""

    prompt_tokens: Count
    completion_tokens: Count
    prompt_tokens_details: _Details | None = None


class _Used(BaseModel):
    usage: TokenUsage


class _Completion(_Used):
    model: str
    choices: Annotated[list[_Choice], Field(min_length=1, max_length=1)]


def read_usage(body: bytes) -> TokenUsage | None:
    """What a reply took, also where the rest of it cannot be used."""
    try:
        return _Used.model_validate_json(body).usage
    except ValidationError:
        return None


def read_reply(body: bytes, http: HttpSpec, ask: Ask) -> Reply:
    """A completion as a Reply; FaultError where it is malformed or another model's."""
    try:
        completion = _Completion.model_validate_json(body)
    except ValidationError as error:
        raise FaultError(FaultKind.MALFORMED, f"{_first(error)}, in {_beginning(body)}") from None
    if completion.model not in (http.api_model, *http.api_aliases):
        raise FaultError(
            FaultKind.FORBIDDEN,
            f"asked for model {http.api_model!r}, answered by {completion.model!r}; if that is the same one, "
            f"declare http.api_aliases: [{completion.model}]",
        )
    (choice,) = completion.choices
    details = completion.usage.prompt_tokens_details
    return Reply(
        text=_text(choice),
        finish_reason=choice.finish_reason or "unknown",
        prompt_tokens=completion.usage.prompt_tokens,
        cached_tokens=(details and details.cached_tokens) or 0,
        output_tokens=completion.usage.completion_tokens,
        option_logprobs=option_logprobs(_first_token(choice), ask.constraint.legal)
        if one_letter(ask)
        else {},
        refused=_is_refused(choice),
    )


def _is_refused(choice: _Choice) -> bool:
    return choice.message.refusal is not None or choice.finish_reason == "content_filter"


def _text(choice: _Choice) -> str:
    """What was said; nothing where all tokens went into thinking, or where a filter took it away."""
    said = choice.message.content
    if said is None and not _is_refused(choice) and choice.finish_reason != "length":
        raise FaultError(
            FaultKind.MALFORMED, f"a choice without text (finish_reason {choice.finish_reason!r})"
        )
    return said or choice.message.refusal or ""


def _first_token(choice: _Choice) -> dict[str, float]:
    places = choice.logprobs.content if choice.logprobs else None
    first = places[0].top_logprobs if places else []
    return {entry.token: entry.logprob if entry.logprob > _NEVER else -math.inf for entry in first}


def _first(error: ValidationError) -> str:
    found = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, found['loc'])) or 'JSON'}: {found['msg']}"


def _beginning(body: bytes) -> str:
    text = body[:_SAID].decode(errors="replace")
    return repr(text if len(body) <= _SAID else f"{text}...")
