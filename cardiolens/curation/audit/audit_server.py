"""Routes of the audit page, for this machine alone; every reading is on disk before it is answered."""

from http import HTTPStatus

from pydantic import Field

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.curation.audit.audit_desk import AuditDesk
from cardiolens.show.local_server import (
    LocalServer,
    Reply,
    Request,
    Site,
    json_reply,
    number_of,
    read_body,
    refusal,
    text_reply,
)
from cardiolens.show.page.page_rendering import asset, templates


class _Reading(Spec):
    """What a person read in the reply of a number."""

    number: int = Field(ge=0)
    letters: list[str] = Field(max_length=26)


def audit_server(desk: AuditDesk, port: int = 0) -> LocalServer:
    """Make a server without starting it; port 0 takes a free port."""

    def read(request: Request) -> Reply | None:
        match request.parts:
            case [""] | ["index.html"]:
                return text_reply("html", templates().get_template("audit.html").render())
            case ["audit.js" | "audit.css" as name]:
                return text_reply("js" if name.endswith(".js") else "css", asset(name))
            case ["next.json"]:
                return json_reply(desk.state())
            case ["replies", number]:
                return json_reply(desk.state(number_of(number)))
            case _:
                return None

    def change(request: Request) -> Reply | None:
        if list(request.parts) != ["read"]:
            return None
        reading = read_body(request, _Reading)
        if isinstance(reading, Reply):
            return reading
        try:
            desk.read(reading.number, reading.letters)
        except InputError as error:
            return refusal(HTTPStatus.OK, str(error))
        except OSError as error:
            reason = f"not saved: the file of readings cannot be written ({error.strerror or error})"
            return refusal(HTTPStatus.OK, reason)
        return json_reply(desk.state())

    return LocalServer(Site(read, change), port)
