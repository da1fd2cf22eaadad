"""Server of the page of review: loopback, people who logged in alone, own host and origin alone."""

import json
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from pydantic import Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import parse_json
from cardiolens.config.base import Spec, describe
from cardiolens.curation.review.accounts import Door, Session
from cardiolens.curation.review.desk import Desk
from cardiolens.curation.review.queue import Asked
from cardiolens.show.page.case_viewer.server import HOST
from cardiolens.show.page.render import asset, templates

WORD = "X-Review-Word"  # a page of another server on this machine gets the cookie, but not this
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_MOST_BYTES = 16 << 10  # of a request
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "json": "application/json"}
Reply = tuple[HTTPStatus, str, bytes]


class _LogIn(Spec):
    reader: str = Field(max_length=64)
    passphrase: str = Field(max_length=256)


def review_server(desk: Desk, door: Door, port: int = 0) -> ThreadingHTTPServer:
    """Make a server that is not yet running; port 0 takes a free port."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 60  # s, after which a client that says nothing is left

        def do_GET(self) -> None:
            words = self._words()
            if words is None:
                return self._send(None)
            if words in ([""], ["index.html"]):
                return self._send(_reply("html", templates().get_template("review.html").render()))
            if words in (["review.js"], ["review.css"]):
                return self._send(_reply(words[0].rpartition(".")[2], asset(words[0])))
            session = self._session()
            if session is None:
                return self._send(_refusal(HTTPStatus.UNAUTHORIZED, "log in"))
            return self._send(_read(desk, session, words))

        def do_POST(self) -> None:
            words, size = self._words(), self.headers.get("Content-Length", "")
            if words is None or self.headers.get("Origin") != f"http://{self.headers.get('Host')}":
                self._send(None)  # another site's page may post here, but not say that it is this one
            elif self.headers.get_content_type() != "application/json" or not size.isdecimal():
                self._send(_refusal(HTTPStatus.BAD_REQUEST, "expected JSON of a stated length"))
            elif int(size) > _MOST_BYTES:
                self._send(_refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long"))
            else:
                self._post(words, self.rfile.read(int(size)))

        def _post(self, words: list[str], body: bytes) -> None:
            session = self._session()
            if words == ["login"]:
                self._log_in(body)
            elif session is None:
                self._send(_refusal(HTTPStatus.UNAUTHORIZED, "log in"))
            elif words == ["logout"]:
                door.log_out(self._cookie())
                self._send(_json({}))
            else:
                self._send(_decided(desk, session, body) if words == ["decide"] else None)

        def _log_in(self, body: bytes) -> None:
            try:
                given = _LogIn.model_validate(parse_json(body))
            except ValueError:
                return self._send(_refusal(HTTPStatus.BAD_REQUEST, "give reader and passphrase"))
            try:
                came = door.log_in(given.reader, given.passphrase)
            except InputError as error:
                return self._send(_refusal(HTTPStatus.OK, str(error)))
            if isinstance(came, float):
                wait = f"; try again in {came:.0f} s" if came >= 1 else ""
                return self._send(_refusal(HTTPStatus.OK, f"no such name and passphrase{wait}"))
            cookie, session = came
            flags = "HttpOnly; SameSite=Strict; Path=/"
            header = {"Set-Cookie": f"{self._cookie_name()}={cookie}; {flags}"}
            return self._send(_json({"word": session.word, "reader": session.reader}), header)

        def _session(self) -> Session | None:
            return door.session(self._cookie(), self.headers.get(WORD, ""))

        def _cookie_name(self) -> str:
            return f"review-{server.server_port}"  # cookies know no ports: two reviews would share one

        def _cookie(self) -> str:
            try:
                found = SimpleCookie(self.headers.get("Cookie", "")).get(self._cookie_name())
            except CookieError:
                return ""
            return "" if found is None else found.value

        def _words(self) -> list[str] | None:
            """Parts of the path; None for a foreign host (rebinding)."""
            hosts = {f"{name}:{server.server_port}" for name in (HOST, "localhost")}
            if self.headers.get("Host") not in hosts:
                return None
            return unquote(self.path.partition("?")[0]).removeprefix("/").split("/")

        def _send(self, reply: Reply | None, more: dict[str, str] | None = None) -> None:
            status, kind, body = reply or (HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"not found\n")
            self.send_response(status)
            headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
            headers |= {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
            headers |= {"Content-Security-Policy": _POLICY, "Cross-Origin-Resource-Policy": "same-origin"}
            for name, value in (headers | (more or {})).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing: who looked at what is in the file of reviews."""

    try:
        server = ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise InputError(f"port={port}: {error.strerror}; end what listens there, or name another") from None
    return server


def address_of(server: ThreadingHTTPServer) -> str:
    """Address of the page."""
    return f"http://{HOST}:{server.server_port}/"


def _read(desk: Desk, session: Session, words: list[str]) -> Reply | None:
    """What stands at an address for somebody who logged in; None where nothing does."""
    match words:
        case ["state.json"]:
            return _json(desk.state(session))
        case ["agreement.json"] if session.role == "adjudicator" and desk.queue.mode == "verify":
            return _json(desk.agreement())
        case ["loops", digest]:
            found = desk.loops(digest)
            return None if found is None else _json(found)
        case ["sheets", digest, volume, name]:
            picture = desk.sheet(digest, volume, name)
            return None if picture is None else (HTTPStatus.OK, "image/png", picture)
        case _:
            return None


def _decided(desk: Desk, session: Session, body: bytes) -> Reply:
    try:
        asked = Asked.model_validate(parse_json(body))
    except ValidationError as error:
        return _refusal(HTTPStatus.BAD_REQUEST, describe(error))
    except ValueError as error:
        return _refusal(HTTPStatus.BAD_REQUEST, str(error))
    return _json(desk.decide(asked, session))


def _json(tree: Any) -> Reply:
    return _reply("json", json.dumps(tree))


def _reply(kind: str, text: str) -> Reply:
    return HTTPStatus.OK, f"{_TYPES[kind]}; charset=utf-8", text.encode()


def _refusal(status: HTTPStatus, why: str) -> Reply:
    return status, "application/json; charset=utf-8", json.dumps({"error": why}).encode()
