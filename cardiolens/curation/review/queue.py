"""Who gets which item: two readers blind to each other, a third where they disagree; all of them to read."""

import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import Spec
from cardiolens.curation.review.accounts import Role
from cardiolens.curation.review.ledger import Key, Ledger, Line, Reason, Reviews, Verdict, now
from cardiolens.curation.review.review_items import Item, Mode

READERS = 2
_HELD = 600.0  # s for which an item that somebody looks at is kept from others
_REASONED = ("reject",)


class DecisionRequest(Spec):
    """A key that somebody pressed: a decision on the item that was shown, or an undo."""

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
    """How far an item is, the two first decisions, and the one that holds where it is settled."""

    state: State
    firsts: tuple[Line, ...]
    final: Line | None = None
    adjudicated: bool = False


def outcome(decisions: Mapping[str, Line]) -> Outcome:
    """The outcome of one item from the decisions on it."""
    firsts = tuple(line for line in decisions.values() if not line.third)[:READERS]
    third = next((line for line in decisions.values() if line.third), None)
    if len(firsts) < READERS:
        return Outcome("open", firsts)
    if len({line.said for line in firsts}) == 1:
        return Outcome("settled", firsts, firsts[0])
    return Outcome("settled", firsts, third, True) if third else Outcome("disputed", firsts)


@dataclass
class Queue:
    """The items of one kind of review, and what is decided about them. The caller holds a lock."""

    items: Mapping[Key, Item]  # in their order
    ledger: Ledger
    mode: Mode
    clock: Callable[[], float] = time.monotonic
    held: dict[Key, dict[str, float]] = field(default_factory=dict)  # since when somebody looks at it

    @staticmethod
    def of(items: Iterable[Item], ledger: Ledger, mode: Mode) -> "Queue":
        return Queue({(item.qa_id, item.digest): item for item in items}, ledger, mode)

    @property
    def reviews(self) -> Reviews:
        return self.ledger.reviews

    def next(self, reader: str, role: Role) -> Item | None:
        """The item that somebody is shown now; in `verify`, that they saw it is on the disk before."""
        for key in [key for key, by in self.held.items() if reader in by]:
            self._let_go(key, reader)
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
        """Who besides a reader has looked at an item since not long ago."""
        since = self.clock() - _HELD
        return frozenset(by for by, began in self.held[key].items() if by != reader and began > since)

    def left(self, reader: str, role: Role) -> int:
        """How many items wait for somebody."""
        return sum(self._is_for(key, reader, role) for key in self.items)

    def done(self, reader: str) -> int:
        """How many decisions of somebody hold."""
        return len(self.reviews.history.get((reader, self.mode), ()))

    def decide(self, request: DecisionRequest, reader: str, role: Role) -> str | None:
        """Keep a decision or an undo; why not, in words, where it cannot be. The same id again is no news."""
        if request.id in self.reviews.ids:
            return None
        if request.undo:
            return self._undo(request, reader)
        key = request.qa_id, request.item
        if key not in self.items:
            return "that is no item of this review any longer; this is the next one"
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
        self._let_go(key, reader)
        return None

    def _let_go(self, key: Key, reader: str) -> None:
        """Keep an item from nobody any longer on account of somebody."""
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
            return "its readers do not disagree any longer; this is the next one" if is_open else None
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
            (not answers and bool(request.answer), "an answer belongs to a correction alone"),
            (
                bool(request.reason) != (request.verdict in _REASONED),
                "a rejection needs a reason, and nothing else",
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
            return "nothing is decided that could be taken back"
        if not last.third and any(line.third for line in self.reviews.of(self.mode, last.key).values()):
            return "a third person decided on it since; it cannot be taken back"
        self.ledger.append(self._line(reader, last.key, "undone", request.id))
        return None

    def _line(self, reader: str, key: Key, event: Literal["shown", "decided", "undone"], name: str) -> Line:
        return Line(id=name, at=now(), event=event, mode=self.mode, reader=reader, qa_id=key[0], item=key[1])
