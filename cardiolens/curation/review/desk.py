"""The page of review: its state, its pictures, and its server, with the addresses below a person's own link.

People who read as models do, or read replies, see names under a key in place of ids: an id may hold an
answer ("C10-answer-B"), a list in the order of ids puts equal answers together, and anybody could compute a
plain digest of an id for each option. The key is kept with the links, so that a page that is open while the
server restarts can still name its question.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from cardiolens.base.console import say
from cardiolens.curation.review.people import People, Person
from cardiolens.curation.review.queue import DecisionRequest, Queue, outcome
from cardiolens.curation.review.review_items import Item
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.show.local_server import (
    LocalServer,
    Reply,
    Request,
    Site,
    json_reply,
    number_of,
    png_reply,
    read_body,
    text_reply,
)
from cardiolens.show.page.page_rendering import asset, templates

DeskState = dict[str, Any]
UNREADABLE = "the images of this study cannot be read; inform the person who runs this review"


@dataclass(frozen=True, slots=True)
class Blinding:
    """Names of items and studies under one key."""

    key: bytes = field(repr=False)

    def item(self, item: Item) -> str:
        """Return the name of an item."""
        return self._name("item", item.qa_id, item.digest)

    def study(self, study_id: str) -> str:
        """Return the name of a study, short enough to be read."""
        return self._name("study", study_id)[:12]

    def in_order(self, items: Iterable[Item]) -> list[Item]:
        """Return items study by study, in the given order of subtasks, and otherwise in an order of names."""
        groups = [list(group) for _, group in groupby(items, lambda item: (item.study, item.subtask.id))]
        groups.sort(key=lambda group: self._name("study", group[0].study))
        return [item for group in groups for item in sorted(group, key=self.item)]

    def _name(self, *parts: str) -> str:
        text = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self.key[:64], digest_size=16).hexdigest()


@dataclass
class Desk:
    """A review in progress: one queue, changed only under one lock."""

    queue: Queue
    pictures: Pictures
    blinding: Blinding | None = None  # of people who see no truth
    lock: threading.RLock = field(default_factory=threading.RLock)

    @cached_property
    def by_handle(self) -> Mapping[str, Item]:
        """Items by their names on the page."""
        return {self._handle(item): item for item in self.queue.items.values()}

    def _handle(self, item: Item) -> str:
        return item.digest if self.blinding is None else self.blinding.item(item)

    def decide(self, request: DecisionRequest, person: Person) -> DeskState:
        """Store a decision and return the next state; `error` says why the decision was refused."""
        with self.lock:
            try:
                refused = self.queue.decide(self._unblinded(request), person.name, person.role)
            except OSError as error:
                return _unwritten(error)
            return {"kept": request.id} | ({"error": refused} if refused else {}) | self.state(person)

    def _unblinded(self, request: DecisionRequest) -> DecisionRequest:
        """Return a request with the ids of the item it names; an unknown name, or a real id, is no item's.

        If real ids were heard too, a reader could try ids with each answer and learn which of them exists.
        """
        if self.blinding is None:
            return request
        item = self.by_handle.get(request.item)
        qa_id, digest = ("", "") if item is None else item.key
        return request.model_copy(update={"qa_id": qa_id, "item": digest})

    def state(self, person: Person) -> DeskState:
        """Return the current state of one person's page."""
        with self.lock:
            try:
                item = self.queue.next(person.name, person.role)
            except OSError as error:
                return _unwritten(error)
            return {
                "mode": self.queue.mode,
                "done": self.queue.done(person.name),
                "left": self.queue.left(person.name, person.role),
                "reader": person.name,
                "role": person.role,
                "item": None if item is None else self._item(item, person),
            }

    def _item(self, item: Item, person: Person) -> DeskState:
        question = item.question
        state: DeskState = {
            "qa_id": item.qa_id,
            "item": self._handle(item),
            "study": item.study,
            "subtask": item.subtask.id,
            "question": question.question,
            "options": [option.model_dump() for option in question.options],
            "multi": item.is_multi,
            "exclusive": list(item.subtask.exclusive),
        }
        if self.blinding is not None:
            names = {"qa_id": self._handle(item), "study": self.blinding.study(item.study)}
            of_reply = {} if item.reply is None else {"reply": item.reply, "cut": item.is_cut}
            return state | names | of_reply
        state |= {
            "proposal": list(item.proposal),
            "origin": question.origin,
            "drafted_by": question.verification.get("drafted_by", ""),
            "evidence": item.evidence,
            "report": item.report,
        }
        if person.role == "adjudicator":
            firsts = outcome(self.queue.reviews.of("verify", item.key)).firsts
            verdicts = [line.model_dump(include={"verdict", "answer", "reason"}) for line in firsts]
            state["firsts"] = sorted(verdicts, key=str)  # without names, in an order that hides who was first
        return state

    def loops(self, handle: str) -> DeskState | None:
        """Return the loops of an item, or None if it is unknown; masks are truth and hidden in `read`."""
        item = self._pictured(handle)
        if item is None:
            return None
        is_blind = self.blinding is not None
        loops, remark = self.pictures.routed(item)
        if is_blind and not loops:
            remark = UNREADABLE  # the reason names files, and the name of a file may hold an answer
        drawings = [loop.facts() | {"mask": loop.overlay is not None and not is_blind} for loop in loops]
        return {"loops": drawings, "remark": remark}

    def sheet(self, handle: str, volume: str, name: str) -> bytes | None:
        """Return all phases of a slice as PNG: `<rank>.png`, or `<rank>-mask.png` with the mask."""
        item = self._pictured(handle)
        loops = None if item is None else self.pictures.loops(item.study)
        if loops is None or isinstance(loops, str) or volume not in loops:
            return None
        digits = name.removesuffix(".png").removesuffix("-mask")
        masked, loop, rank = name == f"{digits}-mask.png", loops[volume], number_of(digits)
        legal = 0 <= rank < loop.structure.n_slices and (name == f"{digits}.png" or masked)
        if not legal or (masked and self.blinding is not None):
            return None
        return loop.sheet(rank, masked=masked)

    def _pictured(self, handle: str) -> Item | None:
        """Return the item of a name; None for a reply, which is read without pictures."""
        item = self.by_handle.get(handle)
        return None if item is None or item.reply is not None else item


def _unwritten(error: OSError) -> DeskState:
    why = f"not saved: the file of reviews cannot be written ({error.strerror or error})"
    return {"error": why, "again": True}


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

    def read(request: Request) -> Reply | None:
        token, *rest = request.parts
        person = people.owner(token)
        return None if person is None else _page(desk, person, rest)

    def change(request: Request) -> Reply | None:
        token, *rest = request.parts
        person = people.owner(token)
        if person is None or rest != ["decide"]:
            return None
        decision = read_body(request, DecisionRequest)
        return decision if isinstance(decision, Reply) else json_reply(desk.decide(decision, person))

    return LocalServer(Site(read, change, token=""), port)


def _page(desk: Desk, person: Person, parts: list[str]) -> Reply | None:
    """Return what the page asks for below a person's link, or None."""
    match parts:
        case [""] | ["index.html"]:
            return text_reply("html", templates().get_template("review.html").render())
        case ["review.js" | "review.css" as name]:
            return text_reply("js" if name.endswith(".js") else "css", asset(name))
        case ["state.json"]:
            return json_reply(desk.state(person))
        case ["sheets", handle, volume, name]:
            return png_reply(desk.sheet(handle, volume, name))
        case ["loops", handle] if (loops := desk.loops(handle)) is not None:
            return json_reply(loops)
    return None
