"""Text of strangers made plain: it moves no cursor, opens no line, can be stored, and names no secret."""

import logging
import re
from collections.abc import Iterable

_BLOT = "<key>"
_SHORTEST = 8  # characters of a secret; a shorter one, such as a server's "EMPTY", is a word like others
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")  # all but tab and line feed
_PASSWORD = re.compile(r"(://)[^/\s@:]*:[^/\s@]*@")
_NAMED = re.compile(
    r"""((?:api[-_]?key|passw(?:or)?d|secret|authorization|access[-_]?token)['"]?\s*[:=]\s*['"]?)"""
    r"""(?:bearer\s+|basic\s+)?[^\s'",;}&]+""",
    re.IGNORECASE,
)
_KEY = re.compile(
    r"(?<![A-Za-z0-9])(?:sk-(?=[A-Za-z_-]*\d)[A-Za-z0-9_-]{8,}|(?:hf_|gsk_|ghp_|xai-|AIza)[A-Za-z0-9_-]{20,}"
    r"|eyJ[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_.-]+)"
)


def one_line(text: str, most: int | None = None) -> str:
    """Text on one line, at most `most` characters: white space is a space, what cannot be seen an escape."""
    if not text.isprintable():
        text = "".join(character if character.isprintable() else _shown(character) for character in text)
    return text if most is None or len(text) <= most else f"{text[:most]}..."


def several_lines(text: str) -> str:
    """Text with its lines and tabs; other control characters and lone surrogates become U+FFFD."""
    return _CONTROL.sub("\ufffd", text.replace("\r\n", "\n").replace("\r", "\n"))


def blotted(text: str, secrets: Iterable[str]) -> str:
    """Text without these secrets. To be done before text is cut: half a key is no longer found."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, _BLOT)
    return text


def without_credentials(text: str) -> str:
    """Text without passwords in addresses, values that are named as secrets, and well-known forms of keys."""
    return _KEY.sub(_BLOT, _NAMED.sub(rf"\1{_BLOT}", _PASSWORD.sub(r"\1", text)))


def is_key(text: str) -> bool:
    """Return whether text holds what has the form of a well-known API key."""
    return _KEY.search(text) is not None


class PlainFormatter(logging.Formatter):
    """Formatter of a log: each message is one line, whatever its words; a traceback keeps its lines."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        record.message = one_line(without_credentials(record.message))
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:  # noqa: N802 - logging's name
        return several_lines(super().formatException(ei))  # type: ignore[arg-type]


def _shown(character: str) -> str:
    return " " if character.isspace() and character not in "\x1c\x1d\x1e\x1f" else ascii(character)[1:-1]
