"""Routes of the review page: the page itself is public, everything else needs a log-in."""

from dataclasses import dataclass
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie

from pydantic import Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.base import Spec, describe
from cardiolens.curation.review.accounts import Door, Session
from cardiolens.curation.review.desk import Desk
from cardiolens.curation.review.queue import DecisionRequest
from cardiolens.show.local_server import (
    LocalServer,
    Reply,
    Request,
    Site,
    json_reply,
    png_reply,
    refusal,
    text_reply,
)
from cardiolens.show.page.page_rendering import asset, templates

WORD = "X-Review-Word"  # pages of other servers on this machine receive the cookie, but not this word


class _LogIn(Spec):
    reader: str = Field(max_length=64)
    passphrase: str = Field(max_length=256)


def review_server(desk: Desk, door: Door, port: int = 0) -> LocalServer:
    """Make a server without starting it; port 0 takes a free port."""
    routes = _Routes(desk, door)
    return LocalServer(Site(routes.read, routes.change, token=""), port)


@dataclass(frozen=True)
class _Routes:
    desk: Desk
    door: Door

    def read(self, request: Request) -> Reply | None:
        match request.parts:
            case [""] | ["index.html"]:
                return text_reply("html", templates().get_template("review.html").render())
            case ["review.js" | "review.css" as name]:
                return text_reply("js" if name.endswith(".js") else "css", asset(name))
        session = self._session(request)
        if session is None:
            return refusal(HTTPStatus.UNAUTHORIZED, "log in")
        return self._content(session, request)

    def _content(self, session: Session, request: Request) -> Reply | None:
        """Return the content at an address for a logged-in person, or None."""
        match request.parts:
            case ["state.json"]:
                return json_reply(self.desk.state(session))
            case ["agreement.json"] if session.role == "adjudicator" and self.desk.queue.mode == "verify":
                return json_reply(self.desk.agreement())
            case ["loops", handle]:
                loops = self.desk.loops(handle)
                return None if loops is None else json_reply(loops)
            case ["sheets", handle, volume, name]:
                return png_reply(self.desk.sheet(handle, volume, name))
            case _:
                return None

    def change(self, request: Request) -> Reply | None:
        if list(request.parts) == ["login"]:
            return self._log_in(request)
        session = self._session(request)
        if session is None:
            return refusal(HTTPStatus.UNAUTHORIZED, "log in")
        match request.parts:
            case ["logout"]:
                self.door.log_out(_cookie(request))
                return json_reply({})
            case ["decide"]:
                return self._decide(session, request.body)
            case _:
                return None

    def _log_in(self, request: Request) -> Reply:
        try:
            person = _LogIn.model_validate(parse_json(request.body))
        except ValueError:
            return refusal(HTTPStatus.BAD_REQUEST, "give reader and passphrase")
        try:
            entry = self.door.log_in(person.reader, person.passphrase)
        except InputError as error:
            return refusal(HTTPStatus.OK, str(error))
        if isinstance(entry, float):
            wait = f"; try again in {entry:.0f} s" if entry >= 1 else ""
            return refusal(HTTPStatus.OK, f"no such name and passphrase{wait}")
        cookie, session = entry
        header = f"{_cookie_name(request)}={cookie}; HttpOnly; SameSite=Strict; Path=/"
        words = {"word": session.word, "reader": session.reader}
        return json_reply(words, headers={"Set-Cookie": header})

    def _decide(self, session: Session, body: bytes) -> Reply:
        try:
            decision = DecisionRequest.model_validate(parse_json(body))
        except ValidationError as error:
            return refusal(HTTPStatus.BAD_REQUEST, describe(error))
        except ValueError as error:
            return refusal(HTTPStatus.BAD_REQUEST, str(error))
        return json_reply(self.desk.decide(decision, session))

    def _session(self, request: Request) -> Session | None:
        return self.door.session(_cookie(request), request.headers.get(WORD, ""))


def _cookie_name(request: Request) -> str:
    return f"review-{request.port}"  # browsers share cookies across ports: two reviews would collide


def _cookie(request: Request) -> str:
    try:
        cookie = SimpleCookie(request.headers.get("Cookie", "")).get(_cookie_name(request))
    except CookieError:
        return ""
    return "" if cookie is None else cookie.value
