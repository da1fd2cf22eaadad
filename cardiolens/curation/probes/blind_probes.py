"""Blind probes of drafts by two or more models (protocol 9, stage 6d).

Models answer drafts without images; the scores say which subtasks leak, and are written to the stages.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.curation_specs import QuestionsSpec
from cardiolens.curation.questions.draft_reasons import Reason
from cardiolens.curation.questions.report_files import reject
from cardiolens.curation.questions.stage_files import Record, read_lines, write_lines
from cardiolens.protocol.prompts.question import TextRequest
from cardiolens.protocol.tasks.catalogue import Catalogue, load_catalogue
from cardiolens.protocol.tasks.questions import Question, given_questions

PROBES = "probes.json"
MOST_EXCESS = 0.05  # of blind accuracy over the best constant answer
QUESTION_ALONE, OPTIONS_ALONE = "question alone", "options alone"
ORDERS = ("order 1", "order 2", "order 3")
SETTINGS = (*ORDERS, QUESTION_ALONE, OPTIONS_ALONE)
_SYSTEM = "You answer questions about cardiac MRI. Reply with JSON alone."
_HEADS = {
    QUESTION_ALONE: "No image is shown, and no options. Give the most likely answer in a few words.",
    OPTIONS_ALONE: "These are the options of a question that is not shown. Choose the most likely answer.",
}
_BLIND = "No image is shown. Choose the most likely answer."
Answer = frozenset[str]  # option keys
Replies = Mapping[str, Mapping[str, Sequence[Answer | None]]]  # by model, then by setting, a reply a question
Ask = Callable[[Sequence[TextRequest]], list[str | None]]  # a model: requests in, replies out, in their order


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
        """Return the options that a free answer quotes word for word, and no shorter one within another."""
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


@dataclass(frozen=True, slots=True)
class SubtaskProbe:
    """Results of the probes of one subtask."""

    questions: int
    constant: float  # accuracy of the best constant answer
    blind: Mapping[str, Mapping[str, float]]  # by model: accuracy over the orders, of question, of options
    excess: float  # of the best of all these over the constant

    @property
    def leaks(self) -> bool:
        return self.excess > MOST_EXCESS


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
) -> set[tuple[str, str]]:
    """Return study and subtask of questions that every model answers in every order, and not by a constant.

    A constant answer is right somewhere in every subtask, so this counts only where the subtask leaks, and
    where the same words are not also a question with another answer.
    """
    answers: dict[str, set[Answer]] = defaultdict(set)
    for question in questions:
        answers[_words(question)].add(frozenset(question.answer))
    in_order = [of_model[name] for of_model in replies.values() for name in ORDERS]
    return {
        (question.study_id, question.subtask)
        for at, question in enumerate(questions)
        if scores[question.subtask].leaks
        and len(answers[_words(question)]) == 1
        and all(answers_of[at] == frozenset(question.answer) for answers_of in in_order)
    }


def _subtask(questions: Sequence[Question], replies: Replies) -> SubtaskProbe:
    truth = [frozenset(question.answer) for question in questions]
    constant = Counter(truth).most_common(1)[0][1] / len(truth)
    blind = {
        model: {
            "in any order": sum(_accuracy(truth, settings[name]) for name in ORDERS) / len(ORDERS),
            QUESTION_ALONE: _accuracy(truth, settings[QUESTION_ALONE]),
            OPTIONS_ALONE: _accuracy(truth, settings[OPTIONS_ALONE]),
        }
        for model, settings in replies.items()
    }
    excess = max(share for shares in blind.values() for share in shares.values()) - constant
    return SubtaskProbe(len(questions), constant, blind, excess)


def _accuracy(truth: Sequence[Answer], replies: Sequence[Answer | None]) -> float:
    return sum(answer == reply for answer, reply in zip(truth, replies, strict=True)) / len(truth)


def _of(replies: Replies, places: Sequence[int]) -> Replies:
    return {
        model: {name: [answers[at] for at in places] for name, answers in settings.items()}
        for model, settings in replies.items()
    }


def _words(question: Question) -> str:
    return "\n".join([question.question, *(f"{option.key}. {option.text}" for option in question.options)])


def probe(spec: QuestionsSpec, words: Sequence[str]) -> int:
    """Probe the drafts of a folder with the models that the words name; return 0."""
    from cardiolens.curation.asking.ask_texts import ask, asking_spec

    assert spec.draft is not None, "checked by the configuration"
    names = _models(words)
    others = [word for word in words if not word.startswith("model=")]
    models: dict[str, Ask] = {}
    for name in names:
        place = spec.draft / "probes" / name
        models[name] = partial(ask, asking_spec(spec.draft, place, spec.protocol, [f"model={name}", *others]))
    return probe_drafts(spec.draft, load_catalogue(spec.protocol), models)


def probe_drafts(folder: Path, catalogue: Catalogue, models: Mapping[str, Ask]) -> int:
    """Ask each draft of each model without images, and write the results; return 0."""
    path = folder / "questions.jsonl"
    rows = [row for row in given_questions(path, catalogue) if row.question.options]
    if not rows:
        raise InputError(f"draft={folder}: questions.jsonl holds no question with options; draft some first")
    questions = [row.question for row in rows]
    probes = [probe for question in questions for probe in probes_of(question.qa_id, question)]
    replies: dict[str, dict[str, list[Any]]] = {}
    requests = [probe.request() for probe in probes]
    for name, ask_model in models.items():
        choices = [probe.answer(reply) for probe, reply in zip(probes, ask_model(requests), strict=True)]
        replies[name] = {setting: choices[at :: len(SETTINGS)] for at, setting in enumerate(SETTINGS)}
    _check_read(replies)
    scores = probe_scores(questions, replies)
    out = answered_blind(questions, replies, scores)
    _write(folder, scores, out, replies=replies, questions=questions)
    _say(scores, len(out))
    return 0


def _check_read(replies: Replies) -> None:
    """Raise InputError if fewer than two models answered: who does not answer finds no leak."""
    n_read = {
        model: sum(answer is not None for answers in settings.values() for answer in answers)
        for model, settings in replies.items()
    }
    silent = sorted(model for model, count in n_read.items() if not count)
    if len(n_read) - len(silent) < 2:
        raise InputError(
            f"model: no reply of {', '.join(silent)} holds an answer, and a probe needs two that answer; "
            "nothing was written; name others, or look at their replies in probes/<model>/store"
        )
    for model in silent:
        say(f"{model}: none of its replies holds an answer; it probes nothing")


def _write(
    folder: Path,
    scores: Mapping[str, SubtaskProbe],
    out: set[tuple[str, str]],
    *,
    replies: Replies,
    questions: Sequence[Question],
) -> None:
    """Write the probes into the stage files, the questions and the rejects."""
    right = {
        (question.study_id, question.subtask): {
            model: [settings[name][at] == frozenset(question.answer) for name in SETTINGS]
            for model, settings in replies.items()
        }
        for at, question in enumerate(questions)
    }
    for path in sorted(folder.glob("6-automatic*.jsonl")):
        records = read_lines(path)
        for record in records:
            for subtask, state in record["checked"].items():
                key = record["study_id"], subtask
                if key in right:
                    leaks = scores[subtask].leaks
                    state["probe"] = {"settings": SETTINGS, "right": right[key], "leaks": leaks}
                    state["verdict"] = "fail" if key in out else state["verdict"]
        write_lines(path, records)
    lines = read_lines(folder / "questions.jsonl")
    write_lines(
        folder / "questions.jsonl",
        [
            _probed(line, scores, len(replies))
            for line in lines
            if (line.get("study") or line["study_id"], line["subtask"]) not in out
        ],
    )
    rejects = [
        line
        for line in read_lines(folder / "rejects.jsonl")
        if line["reason"] != Reason.ANSWERED_BLIND or (line["study_id"], line["subtask"]) not in right
    ]
    rejects += [
        reject(6, Reason.ANSWERED_BLIND, study_id=study, subtask=subtask) for study, subtask in sorted(out)
    ]
    write_lines(folder / "rejects.jsonl", rejects)
    record = {
        "models": sorted(replies),
        "subtasks": {name: asdict(score) | {"leaks": score.leaks} for name, score in scores.items()},
        "out": len(out),
    }
    disk.write_text(folder / PROBES, json.dumps(record, indent=1) + "\n")


def _probed(line: Record, scores: Mapping[str, SubtaskProbe], n_models: int) -> Record:
    """Return a question with the results of its subtask; one that leaks goes to full review."""
    score = scores.get(line["subtask"])
    if score is None:
        return line
    verification = {
        **line.get("verification", {}),
        "probes": n_models,
        "blind_excess": round(score.excess, 4),
    }
    if score.leaks:
        verification["queue"] = "full"
    return {**line, "verification": verification}


def _say(scores: Mapping[str, SubtaskProbe], n_out: int) -> None:
    leaking = {name: score for name, score in scores.items() if score.leaks}
    for name, score in leaking.items():
        say(f"{name}: blind accuracy exceeds the best constant answer by {score.excess:.0%}; to review")
    say(
        f"probed: {sum(score.questions for score in scores.values())} questions of {len(scores)} subtasks; "
        f"{len(leaking)} subtasks to review, {n_out} questions out"
    )


def _models(words: Sequence[str]) -> list[str]:
    """Return the names in `model=[a,b]`; InputError for fewer than two."""
    value = next((word.removeprefix("model=") for word in words if word.startswith("model=")), "")
    names = [name.strip() for name in value.strip("[]").split(",") if name.strip()]
    if len(set(names)) < 2:
        raise InputError(
            f"model={value or 'nothing'}: a probe asks two or more models, so that one model's taste is not "
            "taken for a leak; give e.g. model=[qwen3_vl_8b,internvl3_8b]"
        )
    return list(dict.fromkeys(names))
