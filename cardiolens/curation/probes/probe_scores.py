"""Scores of blind probes: what is answered without images beyond the best constant, and by which lengths."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from cardiolens.curation.probes.probe_prompts import (
    OPTIONS_ALONE,
    ORDERS,
    QUESTION_ALONE,
    SETTINGS,
    Answer,
)
from cardiolens.protocol.tasks.questions import Question

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
