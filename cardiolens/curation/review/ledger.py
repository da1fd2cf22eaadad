"""Ledger of a review: what people saw and decided, as JSON Lines, written before the page confirms."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.curation.review.people import Pseudonym
from cardiolens.curation.review.review_items import Mode
from cardiolens.storage.decision_log import DecisionLog, read_decision_lines

SCHEMA = "review-1"
NAME = "reviews.jsonl"

Verdict = Literal["accept", "correct", "reject", "cannot_tell", "answer"]
Reason = Literal["", "not_in_images", "not_in_report", "bad_images", "other_study", "unclear_question"]
Key = tuple[str, str]  # qa_id, and the digest of what was judged


class Line(Spec):
    """One event: an item was shown with its truth, was decided on, or a decision was undone."""

    id: Annotated[str, Field(min_length=8, max_length=64)]  # made by the page; a repeated id counts once
    at: str
    event: Literal["shown", "decided", "undone"]
    mode: Mode
    reader: Pseudonym
    qa_id: str
    item: str  # digest of the item
    verdict: Verdict | None = None
    answer: tuple[str, ...] = ()
    reason: Reason = ""
    seconds: Annotated[float, Field(ge=0)] = 0.0
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
    """Current decisions by item and reader, and the questions whose truth each reader saw."""

    ids: set[str] = field(default_factory=set)
    seen: set[tuple[str, str]] = field(default_factory=set)  # (reader, qa_id) of any version of the draft
    decided: dict[Mode, dict[Key, dict[str, Line]]] = field(
        default_factory=lambda: {mode: {} for mode in get_args(Mode)}
    )
    history: dict[tuple[str, Mode], list[Line]] = field(default_factory=dict)

    def of(self, mode: Mode, key: Key) -> Mapping[str, Line]:
        """Return the decisions on an item by reader, oldest first."""
        return self.decided[mode].get(key, {})

    def last(self, reader: str, mode: Mode) -> Line | None:
        """Return the decision that a reader's undo would take back, or None."""
        own = self.history.get((reader, mode))
        return own[-1] if own else None

    def add(self, line: Line) -> None:
        """Apply a line; ignore a line whose id is known."""
        if line.id in self.ids:
            return
        self.ids.add(line.id)
        if line.mode == "verify":
            self.seen.add((line.reader, line.qa_id))
        lines = self.history.setdefault((line.reader, line.mode), [])
        if line.event == "decided":
            self.decided[line.mode].setdefault(line.key, {})[line.reader] = line
            lines.append(line)
        elif line.event == "undone" and self.of(line.mode, line.key).get(line.reader):
            del self.decided[line.mode][line.key][line.reader]
            lines[:] = [earlier for earlier in lines if earlier.key != line.key]


class Ledger:
    """Append-only file of a review with one writer at a time."""

    def __init__(self, path: Path) -> None:
        self._log = DecisionLog[Line](path, SCHEMA, name=str(path), writer="review")
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
        for _, line in read_decision_lines(path, Line, SCHEMA, name=str(path)):
            reviews.add(line)
    except FileNotFoundError:
        return reviews
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); name the out of a review") from None
    return reviews


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
