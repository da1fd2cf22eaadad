"""A second reading of replies by a language model, of those that the rules left unread or inconsistent.

It is recorded apart and replaces no verdict: what a model reads into a reply is not what the rules can show.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.audit.audit_desk import Shown
from cardiolens.curation.questions.model_extraction import (
    TextRequest,
    execute_plan,
    plan_texts,
    replies_of,
)

_SYSTEM = (
    "You read what a reply to a multiple-choice question answers. You do not judge whether it is right, and "
    "you know nothing of the case. You reply with one JSON object and no other text."
)
_ASKED = """{notice}

{question}

Options:
{options}

{reply}

Which options does the reply give as its final answer? If it changes its answer, the last one counts. If it \
gives no answer, leaves two open, or was cut before it answered, name none. Reply as {{"options": ["A"]}} or \
{{"options": []}}."""


@dataclass(frozen=True, slots=True)
class Reread:
    """What a model reads in one reply: option keys; None where its own reply could not be used."""

    place: tuple[str, str]
    keys: tuple[str, ...] | None


def reread(sweep: SweepSpec, shown: Mapping[tuple[str, str], Shown]) -> list[Reread]:
    """Let the model of a sweep read replies, by their places; equal replies are asked about once."""
    requests = {place: request_on(one) for place, one in shown.items()}
    distinct = {request.text_id: request for request in requests.values()}
    planned = plan_texts(sweep, [[request] for request in distinct.values()])
    execute_plan(planned)
    told = dict(zip(distinct, replies_of(planned, list(distinct.values())), strict=True))
    return [Reread(place, keys_of(told[requests[place].text_id], one)) for place, one in shown.items()]


def request_on(shown: Shown) -> TextRequest:
    """The request about one reply."""
    letters = sorted(key for key, _ in shown.options)
    options = "\n".join(f"{letter}. {text}" for letter, (_, text) in zip(letters, shown.options, strict=True))
    fence = fenced({"question": shown.question, "options": options, "reply": shown.reply})
    prompt = _ASKED.format(notice=fence.notice, **fence.blocks)
    most = len(letters) if shown.several else 1
    schema = {
        "type": "object",
        "properties": {
            "options": {"type": "array", "items": {"enum": letters}, "maxItems": most, "uniqueItems": True}
        },
        "required": ["options"],
        "additionalProperties": False,
    }
    number = hashlib.sha256(prompt.encode()).hexdigest()[:24]
    return TextRequest(number, "answer", _SYSTEM, prompt, json.dumps(schema))


def keys_of(reply: str | None, shown: Shown) -> tuple[str, ...] | None:
    """The options that a model's reply names, or None for a reply that is none of its kind."""
    letters = dict(
        zip(sorted(key for key, _ in shown.options), (key for key, _ in shown.options), strict=True)
    )
    try:
        tree = parse_json((reply or "").encode())
    except ValueError:
        return None
    named = tree.get("options") if isinstance(tree, dict) else None
    if not isinstance(named, list) or not all(
        isinstance(letter, str) and letter in letters for letter in named
    ):
        return None
    keys = tuple(dict.fromkeys(letters[letter] for letter in named))
    return keys if shown.several or len(keys) < 2 else None


def document(
    model: str, rows: Sequence[Mapping[str, Any]], reread_replies: Sequence[Reread]
) -> dict[str, Any]:
    """What a model read, beside the status that the rules gave; `rows` are their verdicts."""
    keys = {one.place: one.keys for one in reread_replies}
    entries = [
        {
            "arm_id": row["arm_id"],
            "qa_id": row["qa_id"],
            "status": row["parse_status"],
            "keys": None
            if keys[row["arm_id"], row["qa_id"]] is None
            else list(keys[row["arm_id"], row["qa_id"]] or ()),
        }
        for row in rows
    ]
    return {
        "schema": "reply-readings-1",
        "model": model,
        "replies": len(entries),
        "read": sum(bool(entry["keys"]) for entry in entries),
        "none": sum(entry["keys"] == [] for entry in entries),
        "unusable": sum(entry["keys"] is None for entry in entries),
        "readings": entries,
    }
