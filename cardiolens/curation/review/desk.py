"""State for the page of review: the next item without what blinds its reader, and the progress.

People who read as models do, or read replies, see names under a key in place of ids: an id may hold an
answer ("C10-answer-B"), a list in the order of ids puts equal answers together, and anybody could compute a
plain digest of an id for each option. The key lies with the links, so that a page that is open while the
server starts again can still say which question it means.
"""

import hashlib
import threading
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from itertools import groupby
from typing import Any

from cardiolens.curation.review.agreement import agreements, as_record
from cardiolens.curation.review.people import Person
from cardiolens.curation.review.queue import DecisionRequest, Queue, outcome, outcomes_of
from cardiolens.curation.review.review_items import Item, Items
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.show.local_server import number_of

DeskState = dict[str, Any]
UNREADABLE = "the images of this study cannot be read; tell whoever runs this review"


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
        groups = [list(group) for _, group in groupby(items, lambda item: (_study(item), item.subtask.id))]
        groups.sort(key=lambda group: self._name("study", _study(group[0])))
        return [item for group in groups for item in sorted(group, key=self.item)]

    def _name(self, *parts: str) -> str:
        text = "\0".join(parts).encode("utf-8", "surrogatepass")
        return hashlib.blake2b(text, key=self.key[:64], digest_size=16).hexdigest()


def _study(item: Item) -> str:
    return item.question.study_id


@dataclass
class Desk:
    """A review in progress: one queue, changed only under one lock."""

    items: Items
    queue: Queue
    pictures: Pictures
    blinding: Blinding | None = None  # of people who see no truth
    lock: threading.Lock = field(default_factory=threading.Lock)

    @cached_property
    def by_handle(self) -> Mapping[str, Item]:
        """Items by their names on the page."""
        return {self._handle(item): item for item in self.queue.items.values()}

    def _handle(self, item: Item) -> str:
        return item.digest if self.blinding is None else self.blinding.item(item)

    def state(self, person: Person) -> DeskState:
        """Return the current state of one person's page."""
        with self.lock:
            return self._state(person)

    def decide(self, request: DecisionRequest, person: Person) -> DeskState:
        """Store a decision and return the next state; `error` says why the decision was refused."""
        with self.lock:
            try:
                refused = self.queue.decide(self._unblinded(request), person.name, person.role)
            except OSError as error:
                return _unwritten(error)
            return {"kept": request.id} | ({"error": refused} if refused else {}) | self._state(person)

    def _unblinded(self, request: DecisionRequest) -> DecisionRequest:
        """Return a request with the ids of the item it names; an unknown name, or a real id, is no item's.

        If real ids were heard too, a reader could try ids with each answer and learn which of them exists.
        """
        if self.blinding is None:
            return request
        item = self.by_handle.get(request.item)
        qa_id, digest = ("", "") if item is None else (item.qa_id, item.digest)
        return request.model_copy(update={"qa_id": qa_id, "item": digest})

    def _state(self, person: Person) -> DeskState:
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
            "study": question.study_id,
            "subtask": item.subtask.id,
            "question": question.question,
            "options": [option.model_dump() for option in question.options],
            "multi": item.is_multi,
            "exclusive": list(item.subtask.exclusive),
        }
        if self.blinding is not None:
            names = {"qa_id": self._handle(item), "study": self.blinding.study(question.study_id)}
            of_reply = {} if item.reply is None else {"reply": item.reply, "cut": item.is_cut}
            return state | names | of_reply
        state |= {
            "proposal": list(item.proposal),
            "origin": question.origin,
            "drafted_by": question.verification.get("drafted_by", ""),
            "evidence": [asdict(quote) for quote in self.items.evidence(item)],
            "report": self.items.reports.get(question.study_id, ""),
        }
        if person.role == "adjudicator":
            firsts = outcome(self.queue.reviews.of("verify", (item.qa_id, item.digest))).firsts
            verdicts = [
                {"verdict": line.verdict, "answer": list(line.answer), "reason": line.reason}
                for line in firsts
            ]
            state["firsts"] = sorted(verdicts, key=str)  # without names, in an order that hides who was first
        return state

    def loops(self, handle: str) -> DeskState | None:
        """Return the loops of an item, or None if it is unknown; masks are truth and hidden in `read`."""
        item = self.by_handle.get(handle)
        if item is None or item.reply is not None:
            return None
        is_blind = self.blinding is not None
        loops, remark = self.pictures.routed(item)
        if is_blind and not loops:
            remark = UNREADABLE  # the reason names files, and the name of a file may tell an answer
        drawings = [loop.facts() | {"mask": loop.overlay is not None and not is_blind} for loop in loops]
        return {"loops": drawings, "remark": remark}

    def sheet(self, handle: str, volume: str, name: str) -> bytes | None:
        """Return all phases of a slice as PNG: `<rank>.png`, or `<rank>-mask.png` with the mask."""
        item = self.by_handle.get(handle)
        loops = None if item is None or item.reply is not None else self.pictures.loops(_study(item))
        if loops is None or isinstance(loops, str) or volume not in loops:
            return None
        digits = name.removesuffix(".png").removesuffix("-mask")
        masked, loop, rank = name == f"{digits}-mask.png", loops[volume], number_of(digits)
        legal = 0 <= rank < loop.structure.n_slices and (name == f"{digits}.png" or masked)
        if not legal or (masked and self.blinding is not None):
            return None
        return loop.sheet(rank, masked=masked)

    def agreement(self) -> DeskState:
        """Return agreement by batch and by subtask, for adjudicators only."""
        items = list(self.queue.items.values())
        with self.lock:
            outcomes = outcomes_of(items, self.queue.reviews)
        rows = agreements(items, outcomes)
        return {
            "batches": [as_record(row) for row in rows.batches],
            "subtasks": [as_record(row) for row in rows.subtasks],
        }


def _unwritten(error: OSError) -> DeskState:
    why = f"not saved: the file of reviews cannot be written ({error.strerror or error})"
    return {"error": why, "again": True}
