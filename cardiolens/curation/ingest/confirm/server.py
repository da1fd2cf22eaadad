"""Server of the page of decisions: loopback, random token, own host and origin alone, every decision on disk.

It reads what the import wrote, and writes to the file of decisions alone.
"""

import json
import secrets
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote

from pydantic import Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import parse_json
from cardiolens.config.base import Spec, describe
from cardiolens.curation.ingest.confirm.imported import ImportedStudy, sheet_of
from cardiolens.curation.ingest.decisions import Choice, Ledger, contradicted
from cardiolens.show.page.case_viewer.server import HOST
from cardiolens.show.page.render import asset, templates
from cardiolens.study.sequences import sequences

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)
_MOST_BYTES = 64 << 10  # of a request
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css", "json": "application/json"}
Reply = tuple[HTTPStatus, str, bytes]


class Asked(Spec):
    """What the page asks for: choices about stacks of a study as it last saw it, or an undo."""

    study_id: str
    revision: int
    stacks: dict[str, Choice | None] = Field(default_factory=dict)
    undo: bool = False


@dataclass
class Desk:
    """Imported studies and the ledger of what is decided about them."""

    studies: Sequence[ImportedStudy]
    ledger: Ledger
    token: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, words: Sequence[str]) -> Reply | None:
        """What stands at an address below the token; None where nothing does."""
        match words:
            case [""] | ["index.html"]:
                return _reply("html", templates().get_template("confirm.html").render())
            case ["confirm.js" | "confirm.css" as name]:
                return _reply(name.rpartition(".")[2], asset(name))
            case ["studies.json"]:
                with self.lock:
                    tree = {"studies": [self._told(study) for study in self.studies], "legal": _legal()}
                return _reply("json", json.dumps(tree))
            case ["sheets", study, name] if study.isdecimal() and name.removesuffix(".png").isdecimal():
                return self._sheet(int(study), int(name.removesuffix(".png")))
            case _:
                return None

    def _sheet(self, study: int, number: int) -> Reply | None:
        if study >= len(self.studies) or number >= len(self.studies[study].files):
            return None
        path = self.studies[study].files[number]
        sheet = None if path is None else sheet_of(path)
        return None if sheet is None else (HTTPStatus.OK, "image/png", sheet[0])

    def _told(self, study: ImportedStudy) -> dict[str, Any]:
        return {"study_id": study.study_id, "proposals": study.proposals, **self._state(study.study_id)}

    def _state(self, study_id: str) -> dict[str, Any]:
        choices = self.ledger.decisions.of(study_id)
        return {
            "revision": self.ledger.decisions.revision(study_id),
            "choices": {stack: choice.model_dump() for stack, choice in choices.items()},
        }

    def decide(self, body: bytes) -> Reply:
        """Append what a request asks for and return the study's state; a refusal says why, and the state.

        A refusal that a person may meet is no error of HTTP, which browsers would complain of.
        """
        try:
            asked = Asked.model_validate(parse_json(body))
        except ValidationError as error:
            return _refusal(HTTPStatus.BAD_REQUEST, describe(error))
        except ValueError as error:
            return _refusal(HTTPStatus.BAD_REQUEST, str(error))
        study = next((each for each in self.studies if each.study_id == asked.study_id), None)
        if study is None:
            return _refusal(HTTPStatus.BAD_REQUEST, "no such study; load the page again")
        with self.lock:
            refused = self._refused(study, asked)
            if refused is None:
                try:
                    if asked.undo:
                        self.ledger.undo(study.study_id)
                    else:
                        self.ledger.decide(study.study_id, asked.stacks)
                except InputError as error:
                    refused = str(error)
                except OSError as error:
                    refused = f"not kept, the file of decisions cannot be written ({error.strerror or error})"
            if refused is not None:
                return _refusal(HTTPStatus.OK, refused, self._state(study.study_id))
            return _reply("json", json.dumps(self._state(study.study_id)))

    def _refused(self, study: ImportedStudy, asked: Asked) -> str | None:
        if asked.revision != self.ledger.decisions.revision(study.study_id):
            return "decided on elsewhere since; this is how it stands now, press the key again"
        if asked.undo:
            return None
        stacks = study.by_stack()
        if not asked.stacks or not asked.stacks.keys() <= stacks.keys():
            return "no such stack; load the page again"
        for stack, choice in asked.stacks.items():
            if choice is not None and (why := choice.refused(int(stacks[stack]["phases"]))):
                return f"{_WORDS[why]}"
        merged = self.ledger.decisions.of(study.study_id) | asked.stacks
        twice = contradicted([choice for choice in merged.values() if choice is not None])
        if twice:
            return f"another stack is confirmed as {', '.join(sorted(twice))}; C takes this one instead of it"
        return None


_WORDS = {
    "sequence": "a cine or a first pass has several phases, other sequences one; choose another sequence",
    "phase": "end-diastole and end-systole are phases of a cine, counted from 0",
}


def _legal() -> dict[str, dict[str, Any]]:
    return {
        name: {"over_time": known.over_time, "prefix": known.prefix, "views": known.views}
        for name, known in sequences().items()
    }


def _reply(kind: str, text: str) -> Reply:
    return HTTPStatus.OK, f"{_TYPES[kind]}; charset=utf-8", text.encode()


def _refusal(status: HTTPStatus, why: str, state: Mapping[str, Any] | None = None) -> Reply:
    return status, "application/json; charset=utf-8", json.dumps({"error": why, **(state or {})}).encode()


def desk_server(desk: Desk, port: int = 0) -> ThreadingHTTPServer:
    """Make a server that is not yet running; port 0 takes a free port."""

    class Handler(BaseHTTPRequestHandler):
        timeout = 60  # s, after which a client that says nothing is left

        def do_GET(self) -> None:
            words = self._words()
            self._send(None if words is None else desk.read(words))

        def do_POST(self) -> None:
            words, size = self._words(), self.headers.get("Content-Length", "")
            origin = self.headers.get("Origin")
            if words != ["decide"] or origin != f"http://{self.headers.get('Host')}":
                self._send(None)  # another site's page may post here, but not say that it is this one
            elif self.headers.get_content_type() != "application/json" or not size.isdecimal():
                self._send(_refusal(HTTPStatus.BAD_REQUEST, "expected JSON of a stated length"))
            elif int(size) > _MOST_BYTES:
                self._send(_refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too long"))
            else:
                self._send(desk.decide(self.rfile.read(int(size))))

        def _words(self) -> list[str] | None:
            """Parts of the path below the token; None for a foreign token or host (rebinding)."""
            hosts = {f"{name}:{server.server_port}" for name in (HOST, "localhost")}
            token, _, rest = unquote(self.path.partition("?")[0]).removeprefix("/").partition("/")
            if self.headers.get("Host") not in hosts:
                return None
            return rest.split("/") if secrets.compare_digest(token.encode(), desk.token.encode()) else None

        def _send(self, reply: Reply | None) -> None:
            status, kind, body = reply or (HTTPStatus.NOT_FOUND, "text/plain; charset=utf-8", b"not found\n")
            self.send_response(status)
            headers = {"Content-Type": kind, "Content-Length": str(len(body)), "Cache-Control": "no-store"}
            headers |= {"Referrer-Policy": "no-referrer", "X-Content-Type-Options": "nosniff"}
            headers |= {"Content-Security-Policy": _POLICY, "Cross-Origin-Resource-Policy": "same-origin"}
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing, because an address holds the token."""

    server = ThreadingHTTPServer((HOST, port), Handler)
    return server


def desk_address(server: ThreadingHTTPServer, desk: Desk) -> str:
    """Address of the page, with its token, for the person who started it."""
    return f"http://{HOST}:{server.server_port}/{desk.token}/"
