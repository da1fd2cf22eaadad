"""Prompts of blind probes (protocol 9, stage 6d): a question without images, and what a reply chooses."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.protocol.prompts.text_request import TextRequest
from cardiolens.protocol.tasks.questions import Question

ORDERS = 3
QUESTION_ALONE, OPTIONS_ALONE = "question alone", "options alone"
SETTINGS = (*(f"order {number}" for number in range(1, ORDERS + 1)), QUESTION_ALONE, OPTIONS_ALONE)
Answer = frozenset[str]  # option keys
_SYSTEM = "You answer questions about cardiac MRI. Reply with JSON alone."
_HEADS = {
    QUESTION_ALONE: "No image is shown, and no options. Give the most likely answer in a few words.",
    OPTIONS_ALONE: "These are the options of a question that is not shown. Choose the most likely answer.",
}
_BLIND = "No image is shown. Choose the most likely answer."


@dataclass(frozen=True, slots=True)
class Probe:
    """One question in one setting, with its options in one order."""

    item: str  # an id of the draft
    setting: str
    question: Question

    @property
    def keys(self) -> tuple[str, ...]:
        """The options' own keys in the order shown: as they are, reversed, and moved on by one."""
        keys = tuple(option.key for option in self.question.options)
        return {"order 2": keys[::-1], "order 3": keys[1:] + keys[:1]}.get(self.setting, keys)

    def request(self) -> TextRequest:
        """Return what a model is asked."""
        texts = {option.key: option.text for option in self.question.options}
        listed = "\n".join(f"{shown}. {texts[key]}" for shown, key in self._shown())
        parts = [_HEADS.get(self.setting, _BLIND)]
        parts += [self.question.question] if self.setting != OPTIONS_ALONE else []
        parts += [listed] if self.setting != QUESTION_ALONE else []
        parts += [self._form()]
        return TextRequest(self.item, self.setting, _SYSTEM, "\n\n".join(parts), json.dumps(self._schema()))

    def answer(self, reply: str | None) -> Answer | None:
        """Return the options that a reply chooses; None if it chooses none of them."""
        value = _value(reply)
        if self.setting == QUESTION_ALONE:
            return self._named(value)
        of_shown = dict(self._shown())
        letters = value if isinstance(value, list) else [value]
        if not letters or not all(isinstance(letter, str) and letter in of_shown for letter in letters):
            return None
        return frozenset(of_shown[str(letter)] for letter in letters)

    def _named(self, value: object) -> Answer | None:
        """Return the options whose text a free answer holds, word for word, and no shorter one within it."""
        reply = f" {_folded(value)} " if isinstance(value, str) else ""
        texts = {option.key: _folded(option.text) for option in self.question.options}
        keys = {key for key, text in texts.items() if f" {text} " in reply}
        longest = {
            key for key in keys if not any(texts[key] in texts[longer] for longer in keys if longer != key)
        }
        return frozenset(longest) or None

    def _shown(self) -> list[tuple[str, str]]:
        letters = [option.key for option in self.question.options]
        return list(zip(letters, self.keys, strict=True))

    def _form(self) -> str:
        if self.setting == QUESTION_ALONE:
            return 'Reply: {"answer": "<words>"}'
        if self.question.answer_type == "multi":
            return 'Reply with all letters that apply: {"answer": ["<letter>", ...]}'
        return 'Reply: {"answer": "<letter>"}'

    def _schema(self) -> Mapping[str, object]:
        letters = {"type": "string", "enum": [option.key for option in self.question.options]}
        kind: Mapping[str, object] = letters
        if self.setting == QUESTION_ALONE:
            kind = {"type": "string", "maxLength": 200}
        elif self.question.answer_type == "multi":
            kind = {"type": "array", "items": letters, "minItems": 1, "maxItems": len(self.question.options)}
        return {"type": "object", "properties": {"answer": kind}, "required": ["answer"]}


def probes_of(item: str, question: Question) -> list[Probe]:
    """Return the probes of a draft, in the order of the settings."""
    return [Probe(item, setting, question) for setting in SETTINGS]


def _value(reply: str | None) -> object:
    """Return the answer in a reply's JSON object; None if there is none."""
    match = re.search(r"\{.*\}", reply or "", re.DOTALL)
    try:
        record = parse_json(match[0]) if match else None
    except ValueError:
        return None
    return record.get("answer") if isinstance(record, dict) else None


def _folded(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
