"""Queue of a review: `verify` needs two blind readers per item and an adjudicator if they disagree.

In `read` everybody gets every item.
"""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import Spec
from cardiolens.curation.review.ledger import Key, Ledger, Line, Reason, Reviews, Verdict, now
from cardiolens.curation.review.people import Role
from cardiolens.curation.review.review_items import Item, Mode

READERS = 2
_RESERVED = 600.0  # s for which an item on one person's page is reserved
_REASONED = ("reject",)


class DecisionRequest(Spec):
    """Request of the page: a decision on the item shown, or an undo."""

    id: Annotated[str, Field(pattern="^[A-Za-z0-9-]{16,64}$")]
    qa_id: str = ""
    item: str = ""
    verdict: Verdict | None = None
    answer: tuple[str, ...] = ()
    reason: Reason = ""
    seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0
    undo: bool = False


State = Literal["open", "disputed", "settled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """State of an item, its first two decisions, and the final decision of a settled item."""

    state: State
    firsts: tuple[Line, ...]
    final: Line | None = None
    adjudicated: bool = False


def outcome(decisions: Mapping[str, Line]) -> Outcome:
    """Return the outcome of an item from its decisions by reader."""
    firsts = tuple(line for line in decisions.values() if not line.third)[:READERS]
    third = next((line for line in decisions.values() if line.third), None)
    if len(firsts) < READERS:
        return Outcome("open", firsts)
    if len({line.said for line in firsts}) == 1:
        return Outcome("settled", firsts, firsts[0])
    return Outcome("settled", firsts, third, True) if third else Outcome("disputed", firsts)


@dataclass
class Queue:
    """Items of one mode of review and their decisions. Not thread-safe: the caller holds a lock."""

    items: Mapping[Key, Item]  # in order of review
    ledger: Ledger
    mode: Mode
    clock: Callable[[], float] = time.monotonic
    held: dict[Key, dict[str, float]] = field(default_factory=dict)  # by item and reader: shown since

    @staticmethod
    def of(items: Iterable[Item], ledger: Ledger, mode: Mode) -> "Queue":
        return Queue({(item.qa_id, item.digest): item for item in items}, ledger, mode)

    @cached_property
    def parents(self) -> frozenset[str | None]:
        """Subtasks on whose true answer it depends whether another question is asked."""
        return frozenset(item.subtask.parent for item in self.items.values())

    @property
    def reviews(self) -> Reviews:
        return self.ledger.reviews

    def next(self, reader: str, role: Role) -> Item | None:
        """Return the next item of a reader; in `verify`, first record on disk that the reader saw it."""
        for key in [key for key, by in self.held.items() if reader in by]:
            self._end_reservation(key, reader)
        key = next((candidate for candidate in self.items if self._is_for(candidate, reader, role)), ("", ""))
        if key not in self.items:
            return None
        if self.mode == "verify":
            if (reader, key[0]) not in self.reviews.seen:
                self.ledger.append(self._line(reader, key, "shown", f"shown-{secrets.token_hex(12)}"))
            self.held.setdefault(key, {})[reader] = self.clock()
        return self.items[key]

    def _is_for(self, key: Key, reader: str, role: Role) -> bool:
        decisions = self.reviews.of(self.mode, key)
        if reader in decisions:
            return False
        if self.mode == "read":
            return (reader, key[0]) not in self.reviews.seen
        others_here = self._others_at(key, reader) if key in self.held else frozenset()
        if role == "adjudicator":
            return len(decisions) >= READERS and not others_here and outcome(decisions).state == "disputed"
        return len(decisions) < READERS and (not others_here or len(others_here.union(decisions)) < READERS)

    def _others_at(self, key: Key, reader: str) -> frozenset[str]:
        """Return the other readers who hold a reservation of an item."""
        since = self.clock() - _RESERVED
        return frozenset(by for by, began in self.held[key].items() if by != reader and began > since)

    def left(self, reader: str, role: Role) -> int:
        """Return how many items wait for a reader."""
        return sum(self._is_for(key, reader, role) for key in self.items)

    def done(self, reader: str) -> int:
        """Return how many decisions of a reader count."""
        return len(self.reviews.history.get((reader, self.mode), ()))

    def decide(self, request: DecisionRequest, reader: str, role: Role) -> str | None:
        """Store a decision or an undo; return why it is refused, or None. A repeated id is ignored."""
        if request.id in self.reviews.ids:
            return None
        if request.undo:
            return self._undo(request, reader)
        key = request.qa_id, request.item
        if key not in self.items:
            return "that item is no longer part of this review; this is the next one"
        if why := self._refused(key, reader, role) or self._illegal(self.items[key], request):
            return why
        line = self._line(reader, key, "decided", request.id).model_copy(
            update={
                "verdict": request.verdict,
                "answer": tuple(sorted(request.answer)),
                "reason": request.reason,
                "seconds": round(request.seconds, 2),
                "third": self.mode == "verify" and role == "adjudicator",
            }
        )
        self.ledger.append(line)
        self._end_reservation(key, reader)
        return None

    def _end_reservation(self, key: Key, reader: str) -> None:
        """End a reader's reservation of an item."""
        by = self.held.get(key, {})
        by.pop(reader, None)
        if not by:
            self.held.pop(key, None)

    def _refused(self, key: Key, reader: str, role: Role) -> str | None:
        decisions = self.reviews.of(self.mode, key)
        saw = (reader, key[0]) in self.reviews.seen
        if reader in decisions:
            return "you decided on it already, perhaps in another tab; this is the next one"
        if self.mode == "read":
            return "you saw its answer when you verified it; this is the next one" if saw else None
        if not saw:
            return "it was not shown to you; this is the next one"
        if role == "adjudicator":
            is_open = outcome(decisions).state != "disputed"
            return "its readers no longer disagree; this is the next one" if is_open else None
        is_full = len(decisions) >= READERS
        return "two others decided on it meanwhile; this is the next one" if is_full else None

    def _illegal(self, item: Item, request: DecisionRequest) -> str | None:
        legal = (
            ("answer", "cannot_tell")
            if self.mode == "read"
            else ("accept", "correct", "reject", "cannot_tell")
        )
        answers = request.verdict in ("answer", "correct")
        rules = [
            (request.verdict not in legal, f"expected one of {', '.join(legal)}"),
            (answers and not item.is_legal(request.answer), "the question does not allow this answer"),
            (not answers and bool(request.answer), "only a correction has an answer"),
            (
                bool(request.reason) != (request.verdict in _REASONED),
                "a rejection needs a reason; other verdicts have none",
            ),
            (
                request.verdict == "correct" and tuple(sorted(request.answer)) == item.proposal,
                "that is the proposed answer; accept it",
            ),
        ]
        return next((words for wrong, words in rules if wrong), None)

    def _undo(self, request: DecisionRequest, reader: str) -> str | None:
        last = self.reviews.last(reader, self.mode)
        if last is None or last.key not in self.items:
            return "no decision is left that could be taken back"
        if self.mode == "read" and self.items[last.key].subtask.id in self.parents:
            return "what follows this question depends on its answer; it cannot be taken back"
        if not last.third and any(line.third for line in self.reviews.of(self.mode, last.key).values()):
            return "a third person decided on it since; it cannot be taken back"
        self.ledger.append(self._line(reader, last.key, "undone", request.id))
        return None

    def _line(self, reader: str, key: Key, event: Literal["shown", "decided", "undone"], name: str) -> Line:
        return Line(id=name, at=now(), event=event, mode=self.mode, reader=reader, qa_id=key[0], item=key[1])
