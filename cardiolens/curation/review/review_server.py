"""Server of the review page: each address lies below the token of a person's own link."""

from collections.abc import Sequence
from dataclasses import dataclass

from cardiolens.base.console import say
from cardiolens.curation.review.desk import Desk
from cardiolens.curation.review.people import People, Person
from cardiolens.curation.review.queue import DecisionRequest
from cardiolens.show.local_server import (
    LocalServer,
    Reply,
    Request,
    Site,
    json_reply,
    png_reply,
    read_body,
    text_reply,
)
from cardiolens.show.page.page_rendering import asset, templates


def serve_desk(desk: Desk, people: People, port: int) -> None:
    """Serve the page until it is interrupted, and print everyone's link."""
    with review_server(desk, people, port) as server:
        for token, person in people.by_token.items():
            say(f"{person.name} ({person.role}): {server.address}{token}/")
        say("pass on each link to its person alone; they lead to this machine only; Ctrl-C ends the page")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            say("")


def review_server(desk: Desk, people: People, port: int = 0) -> LocalServer:
    """Make a server without starting it; port 0 takes a free port."""
    routes = _Routes(desk, people)
    return LocalServer(Site(routes.read, routes.change, token=""), port)


@dataclass(frozen=True)
class _Routes:
    desk: Desk
    people: People

    def read(self, request: Request) -> Reply | None:
        token, *rest = request.parts
        person = self.people.whose(token)
        if person is None:
            return None
        match rest:
            case [""] | ["index.html"]:
                return text_reply("html", templates().get_template("review.html").render())
            case ["review.js" | "review.css" as name]:
                return text_reply("js" if name.endswith(".js") else "css", asset(name))
        return self._content(person, rest)

    def _content(self, person: Person, parts: Sequence[str]) -> Reply | None:
        """Return what the page asks for below a person's link, or None."""
        match parts:
            case ["state.json"]:
                return json_reply(self.desk.state(person))
            case ["agreement.json"] if person.role == "adjudicator" and self.desk.blinding is None:
                return json_reply(self.desk.agreement())
            case ["sheets", handle, volume, name]:
                return png_reply(self.desk.sheet(handle, volume, name))
            case ["loops", handle] if (loops := self.desk.loops(handle)) is not None:
                return json_reply(loops)
        return None

    def change(self, request: Request) -> Reply | None:
        token, *rest = request.parts
        person = self.people.whose(token)
        if person is None or rest != ["decide"]:
            return None
        decision = read_body(request, DecisionRequest)
        return decision if isinstance(decision, Reply) else json_reply(self.desk.decide(decision, person))
