"""Queue of a review and its ledger: who gets which item, and what people saw and decided.

`verify` needs two blind readers per item and an adjudicator if they disagree. In `read` and `audit` everybody
gets every item. The ledger is a file of JSON Lines; each event is on the disk before the page confirms it.
"""

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.curation.review.people import Pseudonym, Role
from cardiolens.curation.review.review_items import Item, Mode
from cardiolens.storage.decision_log import DecisionLog, read_decision_lines

NAME = "reviews.jsonl"
READERS = 2
_SCHEMA = "review-1"
_VERDICTS = {"verify": ("accept", "correct", "reject", "cannot_tell")}  # in other modes an answer is given

Verdict = Literal["accept", "correct", "reject", "cannot_tell", "answer"]
Reason = Literal["", "not_in_images", "not_in_report", "bad_images", "other_study", "unclear_question"]
Event = Literal["shown", "decided", "undone"]
State = Literal["open", "disputed", "settled"]
Key = tuple[str, str]  # qa_id, and the digest of what was judged


class _Decision(Spec):
    """What a person says of an item."""

    qa_id: str = ""
    item: str = ""  # digest of the item
    verdict: Verdict | None = None
    answer: tuple[str, ...] = ()
    reason: Reason = ""
    seconds: Annotated[float, Field(ge=0, le=86_400)] = 0.0


class DecisionRequest(_Decision):
    """Request of the page: a decision on the item shown, or an undo."""

    id: Annotated[str, Field(pattern="^[A-Za-z0-9-]{16,64}$")]
    undo: bool = False


class Line(_Decision):
    """One event: an item was shown with its truth, was decided on, or a decision was undone."""

    id: Annotated[str, Field(min_length=8, max_length=64)]  # made by the page; a repeated id counts once
    at: str
    event: Event
    mode: Mode
    reader: Pseudonym
    qa_id: str
    item: str
    third: bool = False  # by the adjudicator of a disagreement

    @property
    def key(self) -> Key:
        return self.qa_id, self.item

    @property
    def said(self) -> tuple[str | None, tuple[str, ...]]:
        """Verdict and answer, which two readers must share to agree; rejection reasons may differ."""
        return self.verdict, self.answer


@dataclass
class Reviews:
    """Current decisions by item and by reader, and the questions for which each reader saw the truth."""

    ids: set[str] = field(default_factory=set)
    seen: set[tuple[str, str]] = field(default_factory=set)  # (reader, qa_id) of any version of the draft
    decided: dict[Mode, dict[Key, dict[str, Line]]] = field(
        default_factory=lambda: {mode: {} for mode in get_args(Mode)}
    )
    by_reader: dict[tuple[str, Mode], dict[Key, Line]] = field(default_factory=dict)  # oldest first

    def of(self, mode: Mode, key: Key) -> Mapping[str, Line]:
        """Return the decisions on an item by reader, oldest first."""
        return self.decided[mode].get(key, {})

    def of_reader(self, reader: str, mode: Mode) -> Mapping[Key, Line]:
        """Return the decisions of a reader by item, oldest first."""
        return self.by_reader.get((reader, mode), {})

    def add(self, line: Line) -> None:
        """Apply a line; ignore a line with a known id."""
        if line.id in self.ids:
            return
        self.ids.add(line.id)
        if line.mode == "verify":
            self.seen.add((line.reader, line.qa_id))
        decisions = self.by_reader.setdefault((line.reader, line.mode), {})
        if line.event == "decided":
            decisions[line.key] = self.decided[line.mode].setdefault(line.key, {})[line.reader] = line
        elif line.event == "undone" and line.key in decisions:
            del decisions[line.key], self.decided[line.mode][line.key][line.reader]


class Ledger:
    """Append-only file of a review with one writer at a time."""

    def __init__(self, path: Path) -> None:
        self._log = DecisionLog[Line](path, _SCHEMA, name=str(path), writer="review")
        try:
            self.reviews = read_ledger(path)
            self._log.mend()
        except InputError:
            self.close()
            raise

    def append(self, line: Line) -> None:
        """Store a line on disk, then in memory; OSError if writing fails."""
        self._log.append(line)
        self.reviews.add(line)

    def close(self) -> None:
        self._log.close()


def read_ledger(path: Path) -> Reviews:
    """Read a ledger without a truncated last line; InputError for any other fault."""
    reviews = Reviews()
    try:
        for _, line in read_decision_lines(path, Line, _SCHEMA, name=str(path)):
            reviews.add(line)
    except FileNotFoundError:
        return reviews
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the out of a review") from None
    return reviews


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


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
    return {item.digest: outcome(reviews.of("verify", item.key)) for item in items}


class Queue:
    """Items of one mode of review and their decisions. Not thread-safe: the caller holds a lock."""

    def __init__(self, items: Iterable[Item], ledger: Ledger, mode: Mode) -> None:
        self.items = {item.key: item for item in items}  # in order of review
        self.ledger, self.reviews, self.mode = ledger, ledger.reviews, mode
        # subtasks that decide by their true answer whether another question is asked
        self._parents = {item.subtask.parent for item in self.items.values()}

    def next(self, reader: str, role: Role) -> Item | None:
        """Return the next item of a reader; in `verify`, first record on disk that the reader saw it."""
        key = next((key for key in self.items if not self._barred(key, reader, role)), None)
        if key is None:
            return None
        if self.mode == "verify" and (reader, key[0]) not in self.reviews.seen:
            self.ledger.append(self._line(reader, key, "shown", f"shown-{secrets.token_hex(12)}"))
        return self.items[key]

    def left(self, reader: str, role: Role) -> int:
        """Return how many items wait for a reader."""
        return sum(not self._barred(key, reader, role) for key in self.items)

    def done(self, reader: str) -> int:
        """Return how many decisions of a reader count."""
        return len(self.reviews.of_reader(reader, self.mode))

    def _barred(self, key: Key, reader: str, role: Role) -> str:
        """Return why a reader may not decide on an item; an empty string if the reader may."""
        decisions = self.reviews.of(self.mode, key)
        if reader in decisions:
            return "you decided on it already, perhaps in another tab"
        if self.mode != "verify":
            return "you saw its answer when you verified it" if (reader, key[0]) in self.reviews.seen else ""
        if role == "adjudicator":
            return "" if outcome(decisions).state == "disputed" else "its readers no longer disagree"
        return "two others decided on it meanwhile" if len(decisions) >= READERS else ""

    def decide(self, request: DecisionRequest, reader: str, role: Role) -> str | None:
        """Store a decision or an undo; return why it is refused, or None. A repeated id is ignored."""
        if request.id in self.reviews.ids:
            return None
        if request.undo:
            return self._undo(request, reader)
        key = request.qa_id, request.item
        if why := self._misplaced(key, reader, role):
            return f"{why}; this is the next one"
        if why := self._illegal(self.items[key], request):
            return why
        content = request.model_dump(include={"verdict", "reason"})
        content |= {"answer": tuple(sorted(request.answer)), "seconds": round(request.seconds, 2)}
        third = self.mode == "verify" and role == "adjudicator"
        line = self._line(reader, key, "decided", request.id)
        self.ledger.append(line.model_copy(update={**content, "third": third}))
        return None

    def _misplaced(self, key: Key, reader: str, role: Role) -> str:
        """Return why an item is none that this reader was shown and may decide on."""
        if key not in self.items:
            return "that item is no longer part of this review"
        if not (why := self._barred(key, reader, role)) and self.mode == "verify":
            return "" if (reader, key[0]) in self.reviews.seen else "it was not shown to you"
        return why

    def _illegal(self, item: Item, request: DecisionRequest) -> str:
        """Return what is wrong with a decision by the rules of the mode; or nothing."""
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
        return next((words for wrong, words in rules if wrong), "")

    def _undo(self, request: DecisionRequest, reader: str) -> str | None:
        *_, last = [None, *self.reviews.of_reader(reader, self.mode).values()]
        if last is None or last.key not in self.items:
            return "no decision is left that could be taken back"
        if self.mode != "verify" and self.items[last.key].subtask.id in self._parents:
            return "what follows this question depends on its answer; it cannot be taken back"
        if not last.third and any(line.third for line in self.reviews.of(self.mode, last.key).values()):
            return "a third person decided on it since; it cannot be taken back"
        self.ledger.append(self._line(reader, last.key, "undone", request.id))
        return None

    def _line(self, reader: str, key: Key, event: Event, name: str) -> Line:
        return Line(id=name, at=now(), event=event, mode=self.mode, reader=reader, qa_id=key[0], item=key[1])
