"""The replies of an audit as a person meets them: without model, rules' reading and true answer."""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cardiolens.base.errors import InputError
from cardiolens.curation.audit.audit_ledger import AuditLedger
from cardiolens.curation.audit.audit_sample import Sample


@dataclass(frozen=True, slots=True)
class ReplyView:
    """One reply with its question, options in the order in which the model saw them."""

    question: str
    options: tuple[tuple[str, str], ...]  # (original key, text) in the order displayed
    several: bool
    reply: str
    cut: bool


@dataclass
class AuditDesk:
    """A sample, its replies, and the ledger of what was read in them."""

    sample: Sample
    views: Mapping[tuple[str, str], ReplyView]
    ledger: AuditLedger
    lock: threading.Lock = field(default_factory=threading.Lock)

    def state(self, number: int | None = None) -> dict[str, Any]:
        """The reply of a number, by default the first that nobody read yet, and how many are read."""
        with self.lock:
            places = [(sampled.arm_id, sampled.qa_id) for sampled in self.sample.replies]
            n_read = sum(place in self.ledger.readings for place in places)
            if number is None:
                unread = (at for at, place in enumerate(places) if place not in self.ledger.readings)
                number = next(unread, len(places))
            state: dict[str, Any] = {"number": number, "of": len(places), "read": n_read}
            if 0 <= number < len(places):
                state |= self._item(places[number])
            return state

    def _item(self, place: tuple[str, str]) -> dict[str, Any]:
        view, keys = self.views[place], self.ledger.readings.get(place)
        letters = {key: letter for letter, (key, _) in zip(_letters(view), view.options, strict=True)}
        return {
            "question": view.question,
            "options": [[letters[key], text] for key, text in view.options],
            "several": view.several,
            "reply": view.reply,
            "cut": view.cut,
            "chosen": None if keys is None else [letters[key] for key in keys],
        }

    def read(self, number: int, letters: list[str]) -> None:
        """Keep what a person read in a reply.

        InputError for letters that it does not offer, OSError if the disk does not take the reading.
        """
        with self.lock:
            if not 0 <= number < len(self.sample.replies):
                raise InputError(f"reply {number}: there are {len(self.sample.replies)}; load the page again")
            place = (self.sample.replies[number].arm_id, self.sample.replies[number].qa_id)
            view = self.views[place]
            keys = dict(zip(_letters(view), (key for key, _ in view.options), strict=True))
            if not set(letters) <= keys.keys() or len(set(letters)) < len(letters):
                raise InputError(f"letters {letters}: choose of {', '.join(keys)}, each once")
            if len(letters) > 1 and not view.several:
                raise InputError(
                    "the question takes one option; choose one, or none where the reply names two"
                )
            self.ledger.add(place, tuple(keys[letter] for letter in letters))


def _letters(view: ReplyView) -> list[str]:
    """The letters that the model saw: those of the question in their order."""
    return sorted(key for key, _ in view.options)
