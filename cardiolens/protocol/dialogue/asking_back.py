"""Asking back: a reply that cannot be read is quoted to its model, which gives the letters of its answer.

The second request shows the same frames and question. It follows from the first request, its reply and the
words below alone, so the stored completions show whether it was asked; no other state is kept.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from cardiolens.base.digest import digest_of
from cardiolens.protocol.dialogue.chain import without_marks
from cardiolens.protocol.replies import Option, read_reply, visible_text
from cardiolens.protocol.tasks.legal import Constraint, legal_replies, letters_of
from cardiolens.storage import tables
from cardiolens.storage.schemas import QUESTIONS

NONE = "N"  # the reply of a model whose first reply gives no answer
_NONE_OPTION: Option = (NONE, "no answer given")  # beside the options, where a second reply is read
_SETTLED = frozenset({"read", "refused"})  # statuses of replies that are not asked back
_ENDING = """

You replied:
<reply>
{reply}
</reply>
Write {wanted} of the final answer of this reply and nothing else, or N if it gives no answer."""
_WANTED = {False: "the letter", True: "the letter or letters, separated by commas,"}

Texts = Mapping[str, str]  # of options, by original key


class SecondTurn(NamedTuple):
    """The request that asks back: its key, the text after the first prompt, and its legal replies."""

    request_key: str
    ending: str
    constraint: Constraint


@dataclass(frozen=True, slots=True)
class DisplayedChoice:
    """A choice question as displayed: what decides how its replies are read, and what they may be."""

    options: tuple[Option, ...]  # letter and text
    several: bool
    legal: tuple[str, ...]

    @staticmethod
    def of(
        answer_type: str, option_keys: Collection[str], exclusive: Collection[str], texts: Texts
    ) -> "DisplayedChoice":
        """The question with the options of a request, `option_keys` being original keys as displayed."""
        displayed = tuple((key, texts[key]) for key in option_keys)
        return _choice(answer_type, displayed, tuple(exclusive))

    def second_turn(self, request_key: str, reply: str, finish_reason: str) -> SecondTurn | None:
        """The request after a first reply; None if it is read, declines to answer, or shows no text."""
        reading = read_reply(reply, self.options, several=self.several, finish_reason=finish_reason)
        quoted = "" if reading.status in _SETTLED else without_marks(visible_text(reply))
        if not quoted or any(letter == NONE for letter, _ in self.options):
            return None
        ending = _ENDING.format(reply=quoted, wanted=_WANTED[self.several])
        constraint = Constraint((*self.legal, NONE))
        return SecondTurn(digest_of([request_key, ending, constraint.text]), ending, constraint)

    def answer(self, reply: str, finish_reason: str) -> tuple[str, ...] | None:
        """The letters in a second reply, none if it says that the first gives no answer; None if unread."""
        if reply in self.legal:
            return tuple(reply.split(", "))
        options = (*self.options, _NONE_OPTION)
        reading = read_reply(reply, options, several=self.several, finish_reason=finish_reason)
        if reading.answers == (NONE,):
            return ()
        return reading.answers if reading.answers and NONE not in reading.answers else None


@lru_cache(maxsize=4096)
def _choice(
    answer_type: str, displayed: tuple[tuple[str, str], ...], exclusive: tuple[str, ...]
) -> DisplayedChoice:
    keys = tuple(key for key, _ in displayed)
    options = tuple(zip(letters_of(keys), (text for _, text in displayed), strict=True))
    return DisplayedChoice(options, answer_type == "multi", legal_replies(answer_type, keys, exclusive))


def option_texts(questions: Path) -> dict[str, Texts]:
    """The texts of the options of the questions of a store, by question."""
    rows = tables.read(questions, QUESTIONS, ("qa_id", "options")).to_pylist()
    return {row["qa_id"]: {option["key"]: option["text"] for option in row["options"]} for row in rows}
