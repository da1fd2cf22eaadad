"""A second reading of replies by a language model, of those that the rules left unread or inconsistent.

It is recorded apart and replaces no verdict: what a model reads into a reply is not what the rules can show.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.fence import fenced
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.sweep import SweepSpec
from cardiolens.curation.asking.ask_texts import ask, asking_spec
from cardiolens.curation.review.replies import Place, ReplyView, judged_choices, shown_replies
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.show.notebook.run import FinishedRun

_SYSTEM = (
    "You read what a reply to a multiple-choice question answers. You do not judge whether it is right, and "
    "you know nothing of the case. You reply with one JSON object and no other text."
)
_PROMPT = """{notice}

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

    place: Place
    keys: tuple[str, ...] | None


def second_reading(run: FinishedRun, about_model: Sequence[str]) -> int:
    """Let a model read the replies that the rules left unread or inconsistent; no verdict changes."""
    spec = run.configuration
    rows = [row for row in judged_choices(run) if not row["parsed"] or row["parse_status"] == "inconsistent"]
    rows = [row for row in rows if row["parse_status"] != "refusal"]
    if not rows:
        say("the rules read every reply; there is nothing to read a second time")
        return 0
    sweep = asking_spec(spec.store, run.folder / "second_reading", spec.dataset.protocol, about_model)
    (model,) = sweep.model
    views = shown_replies(run, [(row["arm_id"], row["qa_id"]) for row in rows])
    tree = document(model.name, rows, reread(sweep, views))
    path = run.folder / f"reply_readings-{model.name}.json"
    disk.write_text(path, json.dumps(tree, indent=1) + "\n")
    say(
        f"{model.name} reads an answer in {tree['read']} of {tree['replies']} replies that the rules left "
        f"unread or inconsistent, none in {tree['none']}; {tree['unusable']} of its own replies were no use"
    )
    say(f"second reading: {path} (no verdict changed)")
    return 0 if tree["unusable"] < tree["replies"] else 1


def reread(sweep: SweepSpec, views: Mapping[Place, ReplyView]) -> list[Reread]:
    """Let the model of a sweep read replies, by their places; equal replies are asked about once."""
    replies = ask(sweep, [request_on(view) for view in views.values()])
    return [
        Reread(place, keys_of(reply, view))
        for (place, view), reply in zip(views.items(), replies, strict=True)
    ]


def request_on(view: ReplyView) -> TextRequest:
    """The request about one reply."""
    letters = list(view.key_of)
    options = "\n".join(f"{letter}. {text}" for letter, (_, text) in zip(letters, view.options, strict=True))
    fence = fenced({"question": view.question, "options": options, "reply": view.reply})
    prompt = _PROMPT.format(notice=fence.notice, **fence.blocks)
    most = len(letters) if view.several else 1
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


def keys_of(reply: str | None, view: ReplyView) -> tuple[str, ...] | None:
    """The options that a model's reply names, or None for a reply that is none of its kind."""
    key_of = view.key_of
    try:
        tree = parse_json((reply or "").encode())
    except ValueError:
        return None
    letters = tree.get("options") if isinstance(tree, dict) else None
    if not isinstance(letters, list) or not all(
        isinstance(letter, str) and letter in key_of for letter in letters
    ):
        return None
    keys = tuple(dict.fromkeys(key_of[letter] for letter in letters))
    return keys if view.several or len(keys) < 2 else None


def document(model: str, rows: Sequence[Mapping[str, Any]], readings: Sequence[Reread]) -> dict[str, Any]:
    """What a model read, beside the status that the rules gave; `rows` are their verdicts."""
    keys = {entry.place: None if entry.keys is None else list(entry.keys) for entry in readings}
    entries = [
        {
            "arm_id": row["arm_id"],
            "qa_id": row["qa_id"],
            "status": row["parse_status"],
            "keys": keys[row["arm_id"], row["qa_id"]],
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
