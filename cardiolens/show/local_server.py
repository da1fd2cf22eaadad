"""HTTP server of pages for this machine alone: it owns the policy, a site gives the routes."""

import json
import logging
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import Message
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, TypeVar
from urllib.parse import unquote

from pydantic import BaseModel, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.base import describe

log = logging.getLogger(__name__)

Body = TypeVar("Body", bound=BaseModel)

HOST = "127.0.0.1"
MOST_BYTES = 64 << 10  # of the body of a request
_DIGITS = 10  # of a number in a request, at most: Python refuses to read one of 5,000
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_POLICY = (
    "default-src 'none'; img-src 'self' data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
)
_FILES = "script-src 'self'; style-src 'self'; connect-src 'self'"
_INLINE = "script-src 'self' 'unsafe-inline'; style-src 'unsafe-inline'"
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Resource-Policy": "same-origin",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request that the policy lets through."""

    parts: Sequence[str]  # of the path, below the token
    query: str
    headers: Message
    port: int  # of the server
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """Content of an answer with its media type; the server adds the headers of the policy."""

    kind: str
    content: bytes
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=dict)


def text_reply(kind: Literal["html", "js", "css"], text: str) -> Reply:
    """A page, script or style sheet."""
    return Reply(f"{_TYPES[kind]}; charset=utf-8", text.encode())


def json_reply(
    tree: Any, status: HTTPStatus = HTTPStatus.OK, headers: Mapping[str, str] | None = None
) -> Reply:
    """A value as JSON."""
    return Reply("application/json; charset=utf-8", json.dumps(tree).encode(), status, headers or {})


def png_reply(picture: bytes | None) -> Reply | None:
    """A picture; None where there is none."""
    return None if picture is None else Reply("image/png", picture)


def refusal(status: HTTPStatus, why: str, state: Mapping[str, Any] | None = None) -> Reply:
    """JSON with the reason for a refusal, and with what else the page needs then."""
    return json_reply({"error": why, **(state or {})}, status)


def read_body(request: Request, shape: type[Body]) -> Body | Reply:
    """What a request asks for, or the refusal of a body that does not have its shape."""
    try:
        return shape.model_validate(parse_json(request.body))
    except ValidationError as error:
        return refusal(HTTPStatus.BAD_REQUEST, describe(error))
    except ValueError as error:
        return refusal(HTTPStatus.BAD_REQUEST, str(error))


def number_of(part: str) -> int:
    """Number that a part of a path, or a length, is; -1 where it is none or has too many digits."""
    return int(part) if re.fullmatch("[0-9]+", part) and len(part) <= _DIGITS else -1


def _plain(status: HTTPStatus) -> Reply:
    return Reply("text/plain; charset=utf-8", f"{status.phrase.lower()}\n".encode(), status)


@dataclass(frozen=True, slots=True)
class Site:
    """Routes of a page; each returns None where nothing stands at an address.

    `change` answers a POST of JSON from the site's own page; a site without it is read only.
    """

    read: Callable[[Request], Reply | None]
    change: Callable[[Request], Reply | None] | None = None
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))  # "" where people log in instead
    inline: bool = False  # whether the page holds its scripts and styles itself

    @property
    def policy(self) -> str:
        """Content-Security-Policy of all replies."""
        return _POLICY + (_INLINE if self.inline else _FILES)


class LocalServer(ThreadingHTTPServer):
    """Server of one site on loopback, not yet running; port 0 takes a free port."""

    def __init__(self, site: Site, port: int = 0) -> None:
        self.site = site
        try:
            super().__init__((HOST, port), _Handler)
        except OSError as error:
            raise InputError(
                f"port={port}: {error.strerror}; end what listens there, or name another"
            ) from None

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log what failed outside a page's routes; the server goes on for the others."""
        log.exception("a connection failed")

    @property
    def address(self) -> str:
        """Address of the page, with its token, for the person who started the server."""
        return f"http://{HOST}:{self.server_port}/" + (f"{self.site.token}/" if self.site.token else "")


class _Handler(BaseHTTPRequestHandler):
    timeout = 60  # s, after which a client that says nothing is left
    server: LocalServer

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that hangs up is no fault of the server
            super().handle()

    def do_GET(self) -> None:
        request = self._request()
        self._answer(None if request is None else lambda: self.server.site.read(request))

    def do_POST(self) -> None:
        request, change = self._request(), self.server.site.change
        if request is None:
            return self._send(None)
        if change is None:
            return self._send(_plain(HTTPStatus.NOT_IMPLEMENTED))
        # A page of another site may post here, but cannot claim to be this one.
        if self.headers.get_all("Origin") != [f"http://{self.headers['Host']}"]:
            return self._send(None)
        body = self._body()
        if isinstance(body, Reply):
            return self._send(body)
        whole = Request(request.parts, request.query, self.headers, request.port, body)
        return self._answer(lambda: change(whole))

    def _answer(self, make: Callable[[], Reply | None] | None) -> None:
        """Send what a page makes of a request; a fault of the page costs one answer, and is logged."""
        try:
            reply = None if make is None else make()
        except ConnectionError:
            raise
        except Exception:  # the server goes on for the others
            log.exception("a request of the page failed")
            reply = _plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        self._send(reply)

    def _request(self) -> Request | None:
        """The request without its body; None for a foreign host or token.

        A foreign host means that another site's name was made to point here (DNS rebinding).
        """
        port, token = self.server.server_port, self.server.site.token
        if self.headers.get_all("Host") not in ([f"{HOST}:{port}"], [f"localhost:{port}"]):
            return None
        path, _, query = self.path.partition("?")
        rest = unquote(path).removeprefix("/")
        if token:
            first, _, rest = rest.partition("/")
            if not secrets.compare_digest(first.encode(), token.encode()):
                return None
        return Request(rest.split("/"), query, self.headers, port)

    def _body(self) -> bytes | Reply:
        """The body of a POST, or the reply that refuses it."""
        sizes = self.headers.get_all("Content-Length", [])
        whole = len(sizes) == 1 and "Transfer-Encoding" not in self.headers
        is_json = self.headers.get_content_type() == "application/json"
        if not is_json or not whole or not re.fullmatch("[0-9]+", sizes[0]):
            return refusal(HTTPStatus.BAD_REQUEST, "expected JSON of a stated length")
        size = number_of(sizes[0])
        if not 0 <= size <= MOST_BYTES:
            return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long")
        body = self.rfile.read(size)
        if len(body) < size:
            raise ConnectionAbortedError("the client hung up before the end of its request")
        return body

    def _send(self, reply: Reply | None) -> None:
        reply = reply or _plain(HTTPStatus.NOT_FOUND)
        own = {"Content-Type": reply.kind, "Content-Length": str(len(reply.content))}
        own |= {"Content-Security-Policy": self.server.site.policy}
        self.request_version = self.protocol_version  # to HTTP/0.9 it would go without its headers
        self.send_response(reply.status)
        for name, value in (_HEADERS | own | dict(reply.headers)).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(reply.content)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a malformed request under the same policy, without its words."""
        self._send(_plain(HTTPStatus(code)))

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing, because an address holds the token and says who looked at what."""
