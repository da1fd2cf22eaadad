"""Completion probe: whether a model goes on with the words of our questions.

A model that was trained on a question can finish it. So can one that guesses well: therefore the same second
half is awaited after the same question in other words, which is the null.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from math import comb
from typing import Any

from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.protocol.tasks.catalogue import Catalogue
from cardiolens.protocol.tasks.questions import Question

LEVEL = 0.01  # of the sign test over texts
LEAST_DIFFERENCE = 0.1  # of the words gone on with
_SYSTEM = "You continue texts word for word. Reply with JSON alone."
_HEAD = "This is the first half of a text of a published benchmark. Continue it, word for word, to its end:"
_FORM = 'Reply: {"continuation": "<words>"}'
_SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {"continuation": {"type": "string", "maxLength": 1500}},
        "required": ["continuation"],
    }
)


@dataclass(frozen=True, slots=True)
class HalfText:
    """The halves of a question's text, and the first half of the same question in other words."""

    name: str
    first: str
    reworded: str
    second: str

    def requests(self) -> tuple[TextRequest, TextRequest]:
        """Return what a model is asked: to go on with our words, and with others."""
        return tuple(  # type: ignore[return-value]
            TextRequest(self.name, name, _SYSTEM, f"{_HEAD}\n\n{half}\n\n{_FORM}", _SCHEMA)
            for name, half in (("completion", self.first), ("completion null", self.reworded))
        )

    def share(self, reply: str | None) -> float:
        """Return the share of the second half that a reply goes on with: words in runs of three or more."""
        awaited, written = _tokens(self.second), _tokens(_continuation(reply))
        blocks = SequenceMatcher(None, awaited, written, autojunk=False).get_matching_blocks()
        return sum(block.size for block in blocks if block.size >= min(3, len(awaited))) / max(
            1, len(awaited)
        )


def half_texts(questions: Sequence[Question], catalogue: Catalogue) -> list[HalfText]:
    """Return the distinct texts of questions in halves."""
    texts: dict[str, HalfText] = {}
    for question in questions:
        options = "\n".join(f"{option.key}. {option.text}" for option in question.options)
        wordings = catalogue[question.subtask].wordings
        reworded = (
            wordings[0] if wordings else f"Say, for this heart: {question.question.rstrip('?.')}, please?"
        )
        text = f"{question.question}\n{options}"
        cut = text.find(" ", len(text) // 2)
        if options and cut > 0:
            first = text[:cut]
            null = (
                reworded + first.removeprefix(question.question) if len(question.question) < cut else reworded
            )
            texts.setdefault(text, HalfText(f"text-{len(texts):05d}", first, null, text[cut:].strip()))
    return list(texts.values())


def completion_scores(
    texts: Sequence[HalfText], replies: Sequence[tuple[str | None, str | None]]
) -> dict[str, Any]:
    """Return how much of the second halves a model goes on with, of ours and of the null, and a sign test."""
    pairs = [(text.share(ours), text.share(null)) for text, (ours, null) in zip(texts, replies, strict=True)]
    n = max(1, len(pairs))
    ours, null = sum(own for own, _ in pairs) / n, sum(reworded for _, reworded in pairs) / n
    more, less = (
        sum(own > reworded for own, reworded in pairs),
        sum(own < reworded for own, reworded in pairs),
    )
    p = sum(comb(more + less, k) for k in range(more, more + less + 1)) / 2 ** (more + less)
    memorised = p < LEVEL and ours - null > LEAST_DIFFERENCE
    n_read = sum(bool(_continuation(reply)) for pair in replies for reply in pair)
    return {"texts": len(pairs), "read": n_read, "ours": ours, "null": null, "p": p, "memorised": memorised}


def _continuation(reply: str | None) -> str:
    match = re.search(r"\{.*\}", reply or "", re.DOTALL)
    try:
        record = parse_json(match[0]) if match else None
    except ValueError:
        record = None
    value = record.get("continuation") if isinstance(record, dict) else None
    return value if isinstance(value, str) else ""


def _tokens(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
