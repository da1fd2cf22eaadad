"""Sanitise a server's response; the only place where its bytes become text that is stored or printed."""

import json
from dataclasses import dataclass

from pydantic import JsonValue

from cardiolens.base.sanitize import blotted, one_line, several_lines

_EXCERPT = 300  # characters of a server's text in a message


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """HTTP response to one request; every text in it is sanitised."""

    status: int
    headers: dict[str, str]  # names in lower case
    tree: JsonValue  # the body; None if the body is not JSON
    beginning: str  # of the body, for messages
    wrong: str | None = None  # why the body is not JSON


class Words:
    """Sanitises the responses of one server, and redacts the secrets that it was sent."""

    def __init__(self, *secrets: str | None) -> None:
        self._secrets = [secret for secret in secrets if secret]

    def heard(self, status: int, headers: dict[str, str], body: bytes) -> HttpAnswer:
        """Return a response with sanitised headers and body."""
        lines = {self.line(name.lower()): self.line(value) for name, value in headers.items()}
        beginning = self.line(body.decode(errors="replace"))
        try:
            return HttpAnswer(status, lines, self._plain(json.loads(body)), beginning)
        except RecursionError:
            return HttpAnswer(status, lines, None, beginning, "JSON is nested too deeply")
        except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
            return HttpAnswer(status, lines, None, beginning, self.line(str(error)))

    def line(self, text: str) -> str:
        """Return text for a message: one line, with secrets redacted before the text is cut."""
        return one_line(blotted(text, self._secrets), _EXCERPT)

    def _plain(self, tree: JsonValue) -> JsonValue:
        match tree:
            case str():
                return several_lines(blotted(tree, self._secrets))
            case list():
                return [self._plain(entry) for entry in tree]
            case dict():
                return {
                    several_lines(blotted(name, self._secrets)): self._plain(v) for name, v in tree.items()
                }
            case _:
                return tree
