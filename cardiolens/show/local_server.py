"""HTTP server of pages for this machine alone: it owns the policy, a site gives the routes."""

import asyncio
import logging
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any, Literal, TypeVar

from aiohttp import web
from pydantic import BaseModel, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.base import describe

log = logging.getLogger(__name__)
_silent = logging.Logger("requests", logging.CRITICAL + 1)  # what is malformed holds the token, too

Body = TypeVar("Body", bound=BaseModel)
Reply = web.Response
json_reply = web.json_response  # a value as JSON

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
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


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


def text_reply(kind: Literal["html", "js", "css"], text: str) -> Reply:
    """A page, script or style sheet."""
    return Reply(text=text, content_type=_TYPES[kind], charset="utf-8")


def png_reply(picture: bytes | None) -> Reply | None:
    """A picture; None where there is none."""
    return None if picture is None else Reply(body=picture, content_type="image/png")


def refusal(status: HTTPStatus, why: str, state: Mapping[str, Any] | None = None) -> Reply:
    """JSON with the reason for a refusal, and with what else the page needs then."""
    return json_reply({"error": why, **(state or {})}, status=status)


def read_body(request: Request, shape: type[Body]) -> Body | Reply:
    """What a request asks for, or the refusal of a body that does not have its shape."""
    try:
        return shape.model_validate(parse_json(request.body))
    except ValidationError as error:
        return refusal(HTTPStatus.BAD_REQUEST, describe(error))
    except ValueError as error:
        return refusal(HTTPStatus.BAD_REQUEST, str(error))


def number_of(part: str) -> int:
    """Number that a part of a path is; -1 where it is none or has too many digits."""
    return int(part) if re.fullmatch("[0-9]+", part) and len(part) <= _DIGITS else -1


class LocalServer(AbstractContextManager["LocalServer"]):
    """Server of one site on loopback, not yet running; port 0 takes a free port."""

    def __init__(self, site: Site, port: int = 0) -> None:
        self.site = site
        try:
            self._socket = socket.create_server((HOST, port))
        except OSError as error:
            raise InputError(
                f"port={port}: {error.strerror}; end what listens there, or name another"
            ) from None
        self._end = Future[None]()
        self.server_port: int = self._socket.getsockname()[1]

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._socket.close()

    @property
    def address(self) -> str:
        """Address of the page, with its token, for the person who started the server."""
        return f"http://{HOST}:{self.server_port}/" + (f"{self.site.token}/" if self.site.token else "")

    def serve_forever(self) -> None:
        """Serve until interrupted, or until another thread calls `shutdown`."""
        asyncio.run(self._serve())

    def shutdown(self) -> None:
        """End `serve_forever`."""
        self._end.set_result(None)

    async def _serve(self) -> None:
        """Serve; no request is logged, because an address holds the token."""
        app = web.Application(middlewares=[self._policy], client_max_size=MOST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, logger=_silent)
        await runner.setup()
        try:
            await web.SockSite(runner, self._socket).start()
            await asyncio.wrap_future(self._end)
        finally:
            await runner.cleanup()

    @web.middleware
    async def _policy(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        """Let through what the page of this site may ask; every reply has the headers of the policy."""
        try:
            reply = await handler(request) if self._is_own(request) else _plain(HTTPStatus.NOT_FOUND)
        except ConnectionError:  # a client that hangs up is no fault of the page
            raise
        except Exception:  # a fault of the page costs one answer; the server goes on for the others
            log.exception("a request of the page failed")
            reply = _plain(HTTPStatus.INTERNAL_SERVER_ERROR)
        reply.headers.update(_HEADERS | {"Content-Security-Policy": self.site.policy})
        return reply

    def _is_own(self, request: web.Request) -> bool:
        """Return whether a request names this host, its token and, where it changes something, its page.

        A foreign host means that another site's name was made to point here (DNS rebinding). A page of
        another site may post here, but cannot claim to be this one.
        """
        hosts = request.headers.getall("Host", [])
        if hosts not in ([f"{HOST}:{self.server_port}"], [f"localhost:{self.server_port}"]):
            return False
        changes = request.method == "POST" and self.site.change is not None
        if changes and request.headers.getall("Origin", []) != [f"http://{hosts[0]}"]:
            return False
        token = request.match_info["path"].partition("/")[0]
        return not self.site.token or secrets.compare_digest(token.encode(), self.site.token.encode())

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        """What the site makes of a request, in a thread of its own."""
        parts = request.match_info["path"].split("/")[1 if self.site.token else 0 :]
        body = b""
        match request.method:
            case "GET":
                route = self.site.read
            case "POST" if self.site.change is not None:
                route = self.site.change
                if refused := _refused(request):
                    return refused
                body = await request.read()
            case _:
                return _plain(HTTPStatus.NOT_IMPLEMENTED)
        reply = await asyncio.to_thread(route, Request(parts, request.query, body))
        return reply or _plain(HTTPStatus.NOT_FOUND)


def _refused(request: web.Request) -> Reply | None:
    """The refusal of a body that is no JSON of a stated length, or too long."""
    if request.content_type != "application/json" or request.content_length is None:
        return refusal(HTTPStatus.BAD_REQUEST, "expected JSON of a stated length")
    too_long = request.content_length > MOST_BYTES
    return refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long") if too_long else None


def _plain(status: HTTPStatus) -> Reply:
    return Reply(text=f"{status.phrase.lower()}\n", status=status)
