"""Blind probes of drafts (protocol 9, stage 6d): prompts, the options that replies choose, and scores."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

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


MOST_EXCESS = 0.05  # of blind accuracy over the best constant answer (protocol 9, stage 6d)
_LEAST_SHARE = 0.8  # of questions in which the length of an option leads to the answer
Replies = Mapping[str, Mapping[str, Sequence[Answer | None]]]  # by model, then by setting, a reply an item


@dataclass(frozen=True, slots=True)
class SubtaskProbe:
    """What probes tell of one subtask."""

    questions: int
    constant: float  # accuracy of the best constant answer
    blind: Mapping[
        str, Mapping[str, float]
    ]  # by model: accuracy over the orders, of question and options alone
    excess: float  # of the best of all these over the constant
    given_away_by: Sequence[str] = field(default_factory=tuple)

    @property
    def leaks(self) -> bool:
        return self.excess > MOST_EXCESS

    def record(self) -> dict[str, Any]:
        """Return the JSON record."""
        return {**asdict(self), "leaks": self.leaks}


def probe_scores(questions: Sequence[Question], replies: Replies) -> dict[str, SubtaskProbe]:
    """Return the scores of each subtask; `replies` follow the order of the questions."""
    places: dict[str, list[int]] = defaultdict(list)
    for place, question in enumerate(questions):
        places[question.subtask].append(place)
    return {
        name: _subtask([questions[at] for at in mine], _of(replies, mine)) for name, mine in places.items()
    }


def answered_blind(
    questions: Sequence[Question], replies: Replies, scores: Mapping[str, SubtaskProbe]
) -> set[int]:
    """Return the places of questions that every model answers in every order, and not by a constant.

    A constant answer is right somewhere in every subtask, so this counts only where the subtask leaks, and
    where the same words are not also a question with another answer.
    """
    answers: dict[str, set[Answer]] = defaultdict(set)
    for question in questions:
        answers[_words(question)].add(frozenset(question.answer))
    orders = SETTINGS[:ORDERS]
    return {
        place
        for place, question in enumerate(questions)
        if scores[question.subtask].leaks
        and len(answers[_words(question)]) == 1
        and all(
            of_model[name][place] == frozenset(question.answer)
            for of_model in replies.values()
            for name in orders
        )
    }


def _subtask(questions: Sequence[Question], replies: Replies) -> SubtaskProbe:
    truth = [frozenset(question.answer) for question in questions]
    constant = Counter(truth).most_common(1)[0][1] / len(truth)
    blind = {
        model: {
            "in any order": sum(_accuracy(truth, settings[name]) for name in SETTINGS[:ORDERS]) / ORDERS,
            QUESTION_ALONE: _accuracy(truth, settings[QUESTION_ALONE]),
            OPTIONS_ALONE: _accuracy(truth, settings[OPTIONS_ALONE]),
        }
        for model, settings in replies.items()
    }
    excess = max(share for shares in blind.values() for share in shares.values()) - constant
    words = tuple(_give_aways(questions, constant)) if excess > MOST_EXCESS else ()
    return SubtaskProbe(len(questions), constant, blind, excess, words)


def _accuracy(truth: Sequence[Answer], replies: Sequence[Answer | None]) -> float:
    return sum(answer == reply for answer, reply in zip(truth, replies, strict=True)) / len(truth)


def _of(replies: Replies, places: Sequence[int]) -> Replies:
    return {
        model: {name: [answers[at] for at in places] for name, answers in settings.items()}
        for model, settings in replies.items()
    }


def _words(question: Question) -> str:
    return "\n".join([question.question, *(f"{option.key}. {option.text}" for option in question.options)])


def _give_aways(questions: Sequence[Question], constant: float) -> Iterator[str]:
    """Yield which lengths of options lead to the answer without an image."""
    for name, choose in (("longest", max), ("shortest", min)):
        share = sum(_by_length(question, choose) in question.answer for question in questions) / len(
            questions
        )
        if share > constant + MOST_EXCESS and share >= _LEAST_SHARE:
            yield f"the {name} option is the answer in {share:.0%}"


def _by_length(question: Question, choose: Any) -> str:
    lengths = [len(option.text) for option in question.options]
    chosen = choose(lengths)
    return question.options[lengths.index(chosen)].key if lengths.count(chosen) == 1 else ""
