"""Blind probes of drafts by two or more models (protocol 9, stage 6d).

Models answer drafts without images; the scores say which subtasks leak, and are written to the stages.
"""

import json
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import compress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cardiolens.base import disk
from cardiolens.base.console import say
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import parse_json
from cardiolens.config.command_words import listed
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
Right = Mapping[str, NDArray[np.bool_]]  # by model: whether it is right, (question, setting)
Ask = Callable[[Sequence[TextRequest]], list[str | None]]  # a model: requests in, replies out, in their order


@dataclass(frozen=True, slots=True)
class Probe:
    """One question in one setting, with its options in one order."""

    setting: str
    question: Question

    def request(self) -> TextRequest:
        """Return what a model is asked."""
        texts = {option.key: option.text for option in self.question.options}
        form, answer = self._form()
        parts = [_HEADS.get(self.setting, _BLIND)]
        parts += [self.question.question] if self.setting != OPTIONS_ALONE else []
        if self.setting != QUESTION_ALONE:
            parts += ["\n".join(f"{letter}. {texts[key]}" for letter, key in self._by_letter().items())]
        schema = {"type": "object", "properties": {"answer": answer}, "required": ["answer"]}
        prompt = "\n\n".join([*parts, form])
        return TextRequest(self.question.qa_id, self.setting, _SYSTEM, prompt, json.dumps(schema))

    def answer(self, reply: str | None) -> Answer | None:
        """Return the options that a reply chooses; None if it chooses none of them."""
        value = _value(reply)
        if self.setting == QUESTION_ALONE:
            return self._named(value)
        option_of = self._by_letter()
        letters = value if isinstance(value, list) else [value]
        if not letters or not all(isinstance(letter, str) and letter in option_of for letter in letters):
            return None
        return frozenset(option_of[str(letter)] for letter in letters)

    def _named(self, value: object) -> Answer | None:
        """Return the options that a free answer quotes word for word, and no shorter one within another."""
        reply = f" {_folded(value)} " if isinstance(value, str) else ""
        texts = {option.key: _folded(option.text) for option in self.question.options}
        keys = {key for key, text in texts.items() if f" {text} " in reply}
        longest = {
            key for key in keys if not any(texts[key] in texts[longer] for longer in keys if longer != key)
        }
        return frozenset(longest) or None

    def _by_letter(self) -> dict[str, str]:
        """The option behind each letter: its own, those in reverse, or moved on by one."""
        keys = [option.key for option in self.question.options]
        ordered = {"order 2": keys[::-1], "order 3": keys[1:] + keys[:1]}.get(self.setting, keys)
        return dict(zip(keys, ordered, strict=True))

    def _form(self) -> tuple[str, Mapping[str, object]]:
        """How to reply, in words and as the JSON schema of the answer."""
        letters = {"type": "string", "enum": [option.key for option in self.question.options]}
        if self.setting == QUESTION_ALONE:
            return 'Reply: {"answer": "<words>"}', {"type": "string", "maxLength": 200}
        if self.question.answer_type == "multi":
            several = {"type": "array", "items": letters, "minItems": 1, "maxItems": len(letters["enum"])}
            return 'Reply with all letters that apply: {"answer": ["<letter>", ...]}', several
        return 'Reply: {"answer": "<letter>"}', letters


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
    leaks: bool


def probe_scores(questions: Sequence[Question], right: Right) -> dict[str, SubtaskProbe]:
    """Return the scores of each subtask; the rows of `right` follow the order of the questions."""
    return {
        name: _subtask(questions, right, [question.subtask == name for question in questions])
        for name in dict.fromkeys(question.subtask for question in questions)
    }


def _subtask(questions: Sequence[Question], right: Right, chosen: Sequence[bool]) -> SubtaskProbe:
    truth = Counter(frozenset(question.answer) for question in compress(questions, chosen))
    constant = truth.most_common(1)[0][1] / truth.total()
    blind: dict[str, dict[str, float]] = {}
    for model, table in right.items():
        by_setting = dict(zip(SETTINGS, table[chosen].mean(axis=0).tolist(), strict=True))
        in_order = sum(by_setting.pop(order) for order in ORDERS) / len(ORDERS)
        blind[model] = {"in any order": in_order, **by_setting}
    excess = max(share for shares in blind.values() for share in shares.values()) - constant
    return SubtaskProbe(truth.total(), constant, blind, excess, excess > MOST_EXCESS)


def answered_blind(
    questions: Sequence[Question], right: Right, scores: Mapping[str, SubtaskProbe]
) -> set[tuple[str, str]]:
    """Return study and subtask of questions that every model answers in every order, and not by a constant.

    A constant answer is right somewhere in every subtask, so this counts only where the subtask leaks, and
    where the same words are not also a question with another answer.
    """
    answers: dict[str, set[Answer]] = defaultdict(set)
    for question in questions:
        answers[_words(question)].add(frozenset(question.answer))
    in_every_order = np.all([table[:, : len(ORDERS)].all(axis=1) for table in right.values()], axis=0)
    return {
        (question.study_id, question.subtask)
        for question in compress(questions, in_every_order)
        if scores[question.subtask].leaks and len(answers[_words(question)]) == 1
    }


def _words(question: Question) -> str:
    return "\n".join([question.question, *(f"{option.key}. {option.text}" for option in question.options)])


def probe(spec: QuestionsSpec, words: Sequence[str]) -> int:
    """Probe the drafts of a folder with the models that the words name; return 0."""
    from cardiolens.curation.asking.ask_texts import ask, asking_spec

    assert spec.draft is not None, "checked by the configuration"
    others = [word for word in words if not word.startswith("model=")]
    models: dict[str, Ask] = {}
    for name in _models(words):
        place = spec.draft / "probes" / name
        models[name] = partial(ask, asking_spec(spec.draft, place, spec.protocol, [f"model={name}", *others]))
    return probe_drafts(spec.draft, load_catalogue(spec.protocol), models)


def probe_drafts(folder: Path, catalogue: Catalogue, models: Mapping[str, Ask]) -> int:
    """Ask each draft of each model without images, and write the results; return 0."""
    rows = given_questions(folder / "questions.jsonl", catalogue)
    questions = [row.question for row in rows if row.question.options]
    if not questions:
        raise InputError(f"draft={folder}: questions.jsonl holds no question with options; draft some first")
    probes = [Probe(setting, question) for question in questions for setting in SETTINGS]
    requests = [probe.request() for probe in probes]
    replies = {
        name: [probe.answer(reply) for probe, reply in zip(probes, ask_model(requests), strict=True)]
        for name, ask_model in models.items()
    }
    _check_read(replies)
    truth = [frozenset(probe.question.answer) for probe in probes]
    right = {
        name: np.reshape(list(map(operator.eq, truth, answers)), (-1, len(SETTINGS)))
        for name, answers in replies.items()
    }
    scores = probe_scores(questions, right)
    out = answered_blind(questions, right, scores)
    _write(folder, questions, right, scores, out)
    leaking = {name: score for name, score in scores.items() if score.leaks}
    for name, score in leaking.items():
        say(f"{name}: blind accuracy exceeds the best constant answer by {score.excess:.0%}; to review")
    say(
        f"probed: {len(questions)} questions of {len(scores)} subtasks; {len(leaking)} subtasks to review, "
        f"{len(out)} questions out"
    )
    return 0


def _check_read(replies: Mapping[str, Sequence[Answer | None]]) -> None:
    """Raise InputError if fewer than two models answered: who does not answer finds no leak."""
    silent = sorted(model for model, answers in replies.items() if not any(answers))
    if len(replies) - len(silent) < 2:
        raise InputError(
            f"model: no reply of {', '.join(silent)} holds an answer, and a probe needs two that answer; "
            "nothing was written; name others, or look at their replies in probes/<model>/store"
        )
    for model in silent:
        say(f"{model}: none of its replies holds an answer; it probes nothing")


def _write(
    folder: Path,
    questions: Sequence[Question],
    right: Right,
    scores: Mapping[str, SubtaskProbe],
    out: Collection[tuple[str, str]],
) -> None:
    """Write the probes into the stage files, the questions and the rejects."""
    right_of = {
        (question.study_id, question.subtask): {model: table[at].tolist() for model, table in right.items()}
        for at, question in enumerate(questions)
    }
    for path in sorted(folder.glob("6-automatic*.jsonl")):
        records = read_lines(path)
        for record in records:
            for subtask, state in record["checked"].items():
                key = record["study_id"], subtask
                if key in right_of:
                    leaks = scores[subtask].leaks
                    state["probe"] = {"settings": SETTINGS, "right": right_of[key], "leaks": leaks}
                    state["verdict"] = "fail" if key in out else state["verdict"]
        write_lines(path, records)
    lines = [
        _probed(line, scores, len(right))
        for line in read_lines(folder / "questions.jsonl")
        if (line.get("study") or line["study_id"], line["subtask"]) not in out
    ]
    write_lines(folder / "questions.jsonl", lines)
    rejects = [
        line
        for line in read_lines(folder / "rejects.jsonl")
        if line["reason"] != Reason.ANSWERED_BLIND or (line["study_id"], line["subtask"]) not in right_of
    ]
    rejects += [
        reject(6, Reason.ANSWERED_BLIND, study_id=study, subtask=subtask) for study, subtask in sorted(out)
    ]
    write_lines(folder / "rejects.jsonl", rejects)
    subtasks = {name: asdict(score) for name, score in scores.items()}
    record = {"models": sorted(right), "subtasks": subtasks, "out": len(out)}
    disk.write_text(folder / PROBES, json.dumps(record, indent=1) + "\n")


def _probed(line: Record, scores: Mapping[str, SubtaskProbe], n_models: int) -> Record:
    """Return a question with the results of its subtask; one that leaks goes to full review."""
    score = scores.get(line["subtask"])
    if score is None:
        return line
    results: Record = {"probes": n_models, "blind_excess": round(score.excess, 4)}
    results |= {"queue": "full"} if score.leaks else {}
    return {**line, "verification": {**line.get("verification", {}), **results}}


def _models(words: Sequence[str]) -> list[str]:
    """Return the names in `model=[a,b]`; InputError for fewer than two."""
    value = next((word.removeprefix("model=") for word in words if word.startswith("model=")), "")
    names = list(dict.fromkeys(listed(value)))
    if len(names) < 2:
        raise InputError(
            f"model={value or 'nothing'}: a probe asks two or more models, so that one model's taste is not "
            "taken for a leak; give e.g. model=[qwen3_vl_8b,internvl3_8b]"
        )
    return names
