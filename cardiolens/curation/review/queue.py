"""Queue of a review: `verify` needs two blind readers per item and an adjudicator if they disagree.

In `read` and `audit` everybody gets every item.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Field

from cardiolens.config.base import Spec
from cardiolens.curation.review.ledger import Key, Ledger, Line, Reason, Reviews, Verdict, now
from cardiolens.curation.review.people import Role
from cardiolens.curation.review.review_items import Item, Mode

READERS = 2
_VERDICTS = {"verify": ("accept", "correct", "reject", "cannot_tell")}  # in other modes an answer is given


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


def outcomes_of(items: Iterable[Item], reviews: Reviews) -> dict[str, Outcome]:
    """Return the outcomes of a verification by the digest of their item."""
    return {item.digest: outcome(reviews.of("verify", (item.qa_id, item.digest))) for item in items}


@dataclass
class Queue:
    """Items of one mode of review and their decisions. Not thread-safe: the caller holds a lock."""

    items: Mapping[Key, Item]  # in order of review
    ledger: Ledger
    mode: Mode

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
        key = next((key for key in self.items if self._is_for(key, reader, role)), None)
        if key is None:
            return None
        if self.mode == "verify" and (reader, key[0]) not in self.reviews.seen:
            self.ledger.append(self._line(reader, key, "shown", f"shown-{secrets.token_hex(12)}"))
        return self.items[key]

    def _is_for(self, key: Key, reader: str, role: Role) -> bool:
        decisions = self.reviews.of(self.mode, key)
        if reader in decisions:
            return False
        if self.mode != "verify":
            return (reader, key[0]) not in self.reviews.seen
        if role == "adjudicator":
            return outcome(decisions).state == "disputed"
        return len(decisions) < READERS

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
        return None

    def _refused(self, key: Key, reader: str, role: Role) -> str | None:
        decisions = self.reviews.of(self.mode, key)
        saw = (reader, key[0]) in self.reviews.seen
        if reader in decisions:
            return "you decided on it already, perhaps in another tab; this is the next one"
        if self.mode != "verify":
            return "you saw its answer when you verified it; this is the next one" if saw else None
        if not saw:
            return "it was not shown to you; this is the next one"
        if role == "adjudicator":
            is_open = outcome(decisions).state != "disputed"
            return "its readers no longer disagree; this is the next one" if is_open else None
        is_full = len(decisions) >= READERS
        return "two others decided on it meanwhile; this is the next one" if is_full else None

    def _illegal(self, item: Item, request: DecisionRequest) -> str | None:
        legal = _VERDICTS.get(self.mode, ("answer", "cannot_tell"))
        answers, rejects = request.verdict in ("answer", "correct"), request.verdict == "reject"
        is_proposal = tuple(sorted(request.answer)) == item.proposal
        rules = (
            (request.verdict not in legal, f"expected one of {', '.join(legal)}"),
            (answers and not item.is_legal(request.answer), "the question does not allow this answer"),
            (not answers and bool(request.answer), "only a correction has an answer"),
            (bool(request.reason) != rejects, "a rejection needs a reason; other verdicts have none"),
            (request.verdict == "correct" and is_proposal, "that is the proposed answer; accept it"),
        )
        return next((words for wrong, words in rules if wrong), None)

    def _undo(self, request: DecisionRequest, reader: str) -> str | None:
        last = self.reviews.last(reader, self.mode)
        if last is None or last.key not in self.items:
            return "no decision is left that could be taken back"
        if self.mode != "verify" and self.items[last.key].subtask.id in self.parents:
            return "what follows this question depends on its answer; it cannot be taken back"
        if not last.third and any(line.third for line in self.reviews.of(self.mode, last.key).values()):
            return "a third person decided on it since; it cannot be taken back"
        self.ledger.append(self._line(reader, last.key, "undone", request.id))
        return None

    def _line(self, reader: str, key: Key, event: Literal["shown", "decided", "undone"], name: str) -> Line:
        return Line(id=name, at=now(), event=event, mode=self.mode, reader=reader, qa_id=key[0], item=key[1])
