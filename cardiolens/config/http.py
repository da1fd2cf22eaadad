"""Configuration of a model behind an OpenAI-compatible server."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import Field, JsonValue, field_validator

from cardiolens.base.sanitize import is_key, without_credentials
from cardiolens.config.base import Positive, Spec

# Fields that say where and how requests are sent; they change no answer.
SERVING = frozenset(
    ("base_url", "api_aliases", "api_key_env", "allow_external", "timeout_seconds", "max_tokens_total")
)

# Request fields that CardioLens sets, or that could carry an identity or a key.
_RESERVED = frozenset(
    (
        *("api_key", "authorization", "logprobs", "max_completion_tokens", "max_tokens", "messages"),
        *("metadata", "model", "n", "prompt_cache_key", "safety_identifier", "seed", "store", "stream"),
        *("temperature", "top_logprobs", "top_p", "user"),
    )
)

# JSON with a field named like a secret, or with a value that is one: "api_key": "x", "token": ["x"]
_SECRET = re.compile(
    r'"[^"]*((api|access|private|secret)[-_]?key|authori[sz]ation|passw|secret|bearer|cookie)[^"]*": \[?"'
    r'|"(token|[^"]*(access|api|auth|refresh|session)[-_]?token[^"]*)": \[?"|"(bearer|basic) ',
    re.IGNORECASE,
)


class HttpSpec(Spec):
    """A server: its address, the form of its requests, and limits on its use."""

    base_url: str  # the URL before /chat/completions, e.g. http://127.0.0.1:8000/v1
    api_model: Annotated[str, Field(min_length=1)]  # the model's name in requests and replies
    api_aliases: tuple[str, ...] = ()  # other names of the model in replies
    api_key_env: str | None = None  # the environment variable that holds the key
    allow_external: bool = False  # true: frames may leave this machine
    # vllm: the server supports structured decoding; reasoning: it takes max_completion_tokens in place of
    # max_tokens, and refuses temperature and seed
    dialect: Literal["openai", "vllm", "reasoning"] = "openai"
    extra_body: Mapping[str, JsonValue] = {}  # further fields of every request, e.g. reasoning_effort: low
    timeout_seconds: Annotated[float, Field(gt=0)] = 600.0  # timeout of one try
    max_tokens_total: Positive | None = None  # limit of prompt and output tokens, over all runs on one store

    @field_validator("base_url")
    @classmethod
    def _plain(cls, value: str) -> str:
        parts = urlsplit(value)
        if is_key(value):
            raise ValueError("holds an API key, which would be written to every run; name it in api_key_env")
        extras = parts.username, parts.password, parts.query, parts.fragment
        port = parts.netloc.rpartition("]")[2].partition(":")[2] or "80"
        is_port = port.isdecimal() and int(port) < 2**16
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_port or any(extras):
            raise ValueError(
                "must be http(s)://host[:port]/path without user, query or fragment, "
                "e.g. http://127.0.0.1:8000/v1"
            )
        return value.rstrip("/")

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str | None) -> str | None:
        if value is not None and not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", value):
            raise ValueError(
                "must be the name of an environment variable, e.g. OPENAI_API_KEY, never the key itself"
            )
        return value

    @field_validator("extra_body")
    @classmethod
    def _further(cls, value: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        if reserved := sorted(_RESERVED & {name.lower() for name in value}):
            raise ValueError(f"may not hold {', '.join(reserved)}: these are set by CardioLens or never sent")
        text = json.dumps(value, ensure_ascii=False)
        if _SECRET.search(text) or without_credentials(text) != text:
            raise ValueError(
                "holds a key, a token or a password, which would be written to every run; name the variable "
                "that holds the key in api_key_env"
            )
        return value

    @property
    def sends_sampling(self) -> bool:
        """Whether temperature and seed are sent."""
        return self.dialect != "reasoning"

    @property
    def host(self) -> str:
        """The host name of the server, without port."""
        return urlsplit(self.base_url).hostname or ""
