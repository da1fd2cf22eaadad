"""State for the page of review: the next item without what blinds its reader, and the progress."""

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

from cardiolens.curation.review.agreement import agreements, as_record
from cardiolens.curation.review.blinding import Blinding
from cardiolens.curation.review.people import Person
from cardiolens.curation.review.queue import DecisionRequest, Queue, outcome
from cardiolens.curation.review.review_items import Item, Items
from cardiolens.curation.review.review_pictures import Pictures
from cardiolens.show.local_server import number_of

DeskState = dict[str, Any]
UNREADABLE = "the images of this study cannot be read; tell whoever runs this review"


@dataclass
class Desk:
    """A review in progress: one queue, changed only under one lock."""

    items: Items
    queue: Queue
    pictures: Pictures
    blinding: Blinding | None = None  # names for people who read as models do, who see nothing else
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_blind(self) -> bool:
        """Whether people read as models do, and see nothing that could tell an answer."""
        return self.blinding is not None

    @cached_property
    def by_handle(self) -> Mapping[str, Item]:
        return {self._handle(item): item for item in self.queue.items.values()}

    def _handle(self, item: Item) -> str:
        """Return the name of an item on the page."""
        return item.digest if self.blinding is None else self.blinding.item(item)

    def state(self, person: Person) -> DeskState:
        """Return the current state of one person's page."""
        with self.lock:
            return self._state(person)

    def decide(self, request: DecisionRequest, person: Person) -> DeskState:
        """Store a decision and return the next state; `error` says why the decision was refused."""
        with self.lock:
            request = self._unblinded(request) if self.is_blind else request
            try:
                refused = self.queue.decide(request, person.name, person.role)
            except OSError as error:
                return {"error": _unwritten(error), "again": True}
            return {"kept": request.id} | ({"error": refused} if refused else {}) | self._state(person)

    def _unblinded(self, request: DecisionRequest) -> DecisionRequest:
        """Return a request with the ids of the item it names; an unknown name, or a real id, is no item's.

        If real ids were heard too, a reader could try ids with each answer and learn which of them exists.
        """
        item = self.by_handle.get(request.item)
        ids = ("", "") if item is None else (item.qa_id, item.digest)
        return request.model_copy(update={"qa_id": ids[0], "item": ids[1]})

    def _state(self, person: Person) -> DeskState:
        try:
            item = self.queue.next(person.name, person.role)
        except OSError as error:
            return {"error": _unwritten(error), "again": True}
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
        study = question.study_id if self.blinding is None else self.blinding.study(question.study_id)
        item_state: DeskState = {
            "qa_id": self._handle(item) if self.is_blind else item.qa_id,
            "item": self._handle(item),
            "study": study,
            "subtask": item.subtask.id,
            "question": question.question,
            "options": [option.model_dump() for option in question.options],
            "multi": question.answer_type == "multi",
            "exclusive": list(item.subtask.exclusive),
        }
        if self.is_blind:
            return item_state
        item_state |= {
            "proposal": list(item.proposal),
            "origin": question.origin,
            "drafted_by": question.verification.get("drafted_by", ""),
            "evidence": [asdict(quote) for quote in self.items.evidence(item)],
            "report": self.items.reports.get(question.study_id, ""),
        }
        if person.role == "adjudicator":
            firsts = outcome(self.queue.reviews.of("verify", (item.qa_id, item.digest))).firsts
            item_state["firsts"] = sorted(  # without names, in an order that hides who was first
                [
                    {"verdict": line.verdict, "answer": list(line.answer), "reason": line.reason}
                    for line in firsts
                ],
                key=str,
            )
        return item_state

    def loops(self, handle: str) -> DeskState | None:
        """Return the loops of an item, or None if it is unknown; masks are truth and hidden in `read`."""
        item = self.by_handle.get(handle)
        if item is None:
            return None
        study_loops, remark = self.pictures.routed(item)
        if self.is_blind and not study_loops:
            remark = UNREADABLE  # the reason names files, and the name of a file may tell an answer
        return {
            "loops": [
                loop.told() | {"mask": not self.is_blind and loop.overlay is not None} for loop in study_loops
            ],
            "remark": remark,
        }

    def sheet(self, handle: str, volume: str, name: str) -> bytes | None:
        """Return all phases of a slice as PNG: `<rank>.png`, or `<rank>-mask.png` with the mask."""
        item = self.by_handle.get(handle)
        loops = None if item is None else self.pictures.loops(item.question.study_id)
        digits = name.removesuffix(".png").removesuffix("-mask")
        if loops is None or isinstance(loops, str) or volume not in loops:
            return None
        masked, loop, rank = name == f"{digits}-mask.png", loops[volume], number_of(digits)
        legal = 0 <= rank < loop.structure.n_slices and (name == f"{digits}.png" or masked)
        if not legal or (masked and self.is_blind):
            return None
        return loop.sheet(rank, masked=masked)

    def agreement(self) -> DeskState:
        """Return agreement by batch and by subtask, for adjudicators only."""
        with self.lock:
            outcomes = {
                item.digest: outcome(self.queue.reviews.of("verify", key))
                for key, item in self.queue.items.items()
            }
        batches, subtasks = agreements(self.queue.items.values(), lambda item: outcomes[item.digest])
        return {
            "batches": [as_record(row) for row in batches],
            "subtasks": [as_record(row) for row in subtasks],
        }


def _unwritten(error: OSError) -> str:
    return f"not saved: the file of reviews cannot be written ({error.strerror or error})"
