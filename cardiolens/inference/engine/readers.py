"""Simulated readers: engines with a known result that test the whole pipeline. They look at no frame."""

import asyncio
import hashlib
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from statistics import NormalDist
from typing import Annotated, Any, Protocol

from pydantic import Field, create_model

from cardiolens.config.base import Spec, validated
from cardiolens.config.model import ModelSpec
from cardiolens.config.plugins import engine_plugin, make
from cardiolens.config.sweep import SweepSpec
from cardiolens.config.sweep_factors import Arm
from cardiolens.inference.engine.ask import (
    FRAMES,
    Ask,
    Engine,
    ErrorKind,
    Pictures,
    Reply,
    RequestError,
)
from cardiolens.inference.models.identity import Reading, readings_of
from cardiolens.protocol.dialogue.asking_back import NONE
from cardiolens.protocol.tasks.catalogue import GATES, OPEN
from cardiolens.protocol.tasks.legal import legal_replies, letters_of
from cardiolens.storage import schemas, tables

TrueAnswer = tuple[str, ...]  # original option keys; for a report, its reference as one JSON text
Share = Annotated[float, Field(ge=0, le=1)]

SEED = 2026


class Simulated(Engine):
    """A reader that says what a function does, the same to equal requests; each answer takes `seconds`."""

    def __init__(self, say: Callable[[Ask], str], seconds: float = 0.0) -> None:
        self._say, self._seconds = say, seconds

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        await asyncio.sleep(self._seconds)
        text = ask_for_frames(ask) if ask.answer_type == FRAMES else self._say(ask)
        return Reply(text=text, finish_reason="stop")


def ask_for_frames(ask: Ask) -> str:
    """Ask for as many of the offered frames as allowed, in the order of the list."""
    naming = ask.constraint.naming
    assert naming is not None, "the constraint of a request that offers frames lists their names"
    return json.dumps({"frames": naming.names[: naming.most]})


class Person(Engine):
    """A person as an engine: replays exported answers from the page of `cardiolens.review`, with seconds.

    An answer of "cannot tell" is a refusal.
    """

    def __init__(self, readings: Mapping[str, Reading]) -> None:
        self._readings = readings

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        reading = self._readings[_question(ask)]  # the plan contains only questions with a reading
        if strange := set(reading.answer) - set(ask.option_keys):
            options = ", ".join(ask.option_keys)
            message = f"the reading names option {min(strange)}, the question has {options}"
            raise RequestError(ErrorKind.REJECTED, message)
        text = _displayed(tuple(reading.answer), ask) if reading.answer else "I cannot tell."
        return Reply(text=text, finish_reason="stop", refused=not reading.answer, seconds=reading.seconds)


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """True answers of all questions, and the arms under which the questions are asked."""

    arms: Mapping[str, Arm] = field(default_factory=dict)  # by arm_id
    answers: Mapping[str, TrueAnswer] = field(default_factory=dict)  # by qa_id
    subtasks: Mapping[str, str] = field(default_factory=dict)  # by qa_id
    exclusive: Mapping[str, TrueAnswer] = field(default_factory=dict)  # by qa_id: they exclude all others
    of_subtask: Mapping[str, list[TrueAnswer]] = field(default_factory=dict)  # one per question, by qa_id

    @staticmethod
    def of(questions: Path, arms: Mapping[str, Arm]) -> "AnswerKey":
        """Read the answers from the store's table of questions."""
        columns = ("qa_id", "subtask", "answer", "reference", "exclusive")
        answers, of_subtask = dict[str, TrueAnswer](), dict[str, list[TrueAnswer]]()
        rows = tables.read(questions, schemas.QUESTIONS, columns).sort_by("qa_id").to_pylist()
        for row in rows:
            answers[row["qa_id"]] = (row["reference"],) if row["reference"] else tuple(row["answer"])
            of_subtask.setdefault(row["subtask"], []).append(answers[row["qa_id"]])
        return AnswerKey(
            arms=arms,
            answers=answers,
            subtasks={row["qa_id"]: row["subtask"] for row in rows},
            exclusive={row["qa_id"]: tuple(row["exclusive"] or ()) for row in rows},
            of_subtask=of_subtask,
        )

    def answer(self, ask: Ask) -> TrueAnswer:
        """Return the true answer to a request."""
        return self.answers[_question(ask)]

    def alike(self, ask: Ask) -> list[TrueAnswer]:
        """Return the true answers of all questions of the request's subtask."""
        return self.of_subtask[self.subtasks[_question(ask)]]

    def wrong(self, ask: Ask, seed: int = SEED) -> TrueAnswer:
        """Draw a wrong legal answer, all equally likely; an open question has none and keeps the true one."""
        answer = self.answer(ask)
        if ask.answer_type in OPEN:
            return answer
        text_by_key = dict(zip(letters_of(ask.option_keys), ask.option_keys, strict=True))
        legal = legal_replies(ask.answer_type, ask.option_keys, self.exclusive[_question(ask)])
        replies = [tuple(text_by_key[letter] for letter in reply.split(", ")) for reply in legal]
        wrong_replies = [reply for reply in replies if set(reply) != set(answer)]
        return wrong_replies[int(_draw(seed, ask, "wrong") * len(wrong_replies))]


def oracle(truth: AnswerKey, ask: Ask) -> TrueAnswer:
    """Give the true answer."""
    return truth.answer(ask)


def uniform(truth: AnswerKey, ask: Ask, *, seed: int = SEED, seconds: float = 0.0) -> str:
    """Draw one of the legal replies, all equally likely; an answer takes `seconds`."""
    legal = ask.constraint.legal or legal_replies(ask.answer_type, ask.option_keys, ())
    return f"ANSWER: {legal[int(_draw(seed, ask) * len(legal))]}" if legal else "{}"


def prevalence(truth: AnswerKey, ask: Ask, *, seed: int = SEED) -> TrueAnswer:
    """Give the true answer of a random question of the subtask: right by frequency alone."""
    alike = truth.alike(ask)
    return alike[int(_draw(seed, ask) * len(alike))]


def constant(truth: AnswerKey, ask: Ask, *, answer: str) -> str:
    """Always give the same reply: one displayed letter."""
    return f"ANSWER: {answer}"


def noisy(truth: AnswerKey, ask: Ask, *, error: Share, seed: int = SEED) -> TrueAnswer:
    """With probability `error`, give one of the wrong legal replies, all equally likely.

    Answers to open questions are always right.
    """
    answer = truth.answer(ask)
    return answer if _draw(seed, ask) >= error else truth.wrong(ask, seed)


def collapse(truth: AnswerKey, ask: Ask, *, share: Share, seed: int = SEED) -> TrueAnswer:
    """With probability `share`, give the subtask's most frequent true answer; reports are always right."""
    if ask.answer_type == "report" or _draw(seed, ask) >= share:
        return truth.answer(ask)
    counts = Counter(truth.alike(ask))
    return max(sorted(counts), key=counts.__getitem__)


def conservative(truth: AnswerKey, ask: Ask, *, drop: Share, seed: int = SEED) -> TrueAnswer:
    """Withhold findings with probability `drop`.

    In multi-select, each true option except exclusive ones (normal) has its own draw; no option is added, so
    precision stays at 100. A reply with all options withheld says "none". In single-choice, only the gates
    are affected: the reader answers with their first option, normal.
    """
    answer, question = truth.answer(ask), _question(ask)
    if ask.answer_type == "multi":
        exclusive = truth.exclusive[question]
        return tuple(key for key in answer if key in exclusive or _draw(seed, ask, key) >= drop)
    withheld = truth.subtasks[question] in GATES and _draw(seed, ask) < drop
    return (min(ask.option_keys),) if withheld else answer


def budget_effect(
    truth: AnswerKey,
    ask: Ask,
    *,
    base: float,
    doubling: float = 0.0,
    clinical: float = 0.0,
    blind: float = 0.0,
) -> TrueAnswer:
    """Be right with probability base + doubling * log2(K / 8), where K is the arm's budget.

    A clinical selector adds `clinical`. Without frames the probability is `blind`. A wrong answer is one of
    the other legal replies.
    """
    right = blind
    if ask.frame_keys:
        arm = truth.arms[str(ask.arm_id)]
        n_frames = arm.budget if isinstance(arm.budget, int) else len(ask.frame_keys)
        right = base + doubling * math.log2(n_frames / 8) + (arm.selector.kind == "clinical") * clinical
    return truth.answer(ask) if _draw(SEED, ask) < right else truth.wrong(ask)


def measuring(
    truth: AnswerKey, ask: Ask, *, bias: float = 0.0, spread: float = 0.0, place: int = 1, seed: int = SEED
) -> TrueAnswer | str:
    """Be wrong by a known amount on open questions, and right on all others.

    A number is the true one plus `bias` plus a normal error of standard deviation `spread`, in the unit and
    with the decimals of the truth; it stays at or above 0. A ranking has the true name in place `place`.
    """
    answer = truth.answer(ask)
    if ask.answer_type == "ranking":
        names = [f"another name {number}" for number in range(1, place)] + [answer[0]]
        return "ANSWER:\n" + "\n".join(f"{at}. {name}" for at, name in enumerate(names, start=1))
    if ask.answer_type != "number":
        return answer
    number, _, unit = answer[0].partition(" ")
    error = bias + spread * NormalDist().inv_cdf(max(_draw(seed, ask), 1e-12))
    decimals = len(number.partition(".")[2])
    return f"ANSWER: {max(float(number) + error, 0.0):.{decimals}f} {unit}"


READERS: dict[str, Callable[..., TrueAnswer | str]] = {
    reader.__name__: reader
    for reader in (
        *(oracle, uniform, prevalence, constant, noisy, collapse, conservative),
        *(budget_effect, measuring),
    )
}
"""What each reader answers to a request: an answer, or the words of a reply."""


class SimulatedReader(Protocol):
    """A reader of another package, an entry point of `cardiolens.readers` (docs/guides/extend.md).

    The entry point makes it of the true answers (`AnswerKey`) and the model's `options`.
    """

    def say(self, ask: Ask) -> str:
        """Return the reply to a request."""
        ...


def open_engine(model: ModelSpec) -> Engine:
    """Make the engine of another package, an entry point of `cardiolens.engines` (docs/guides/extend.md).

    The entry point makes it of the model's `sampling` and `options`: before a run, to be checked, and again
    in the process that asks it. What is slow or takes memory belongs into `start`.
    """
    engine: Engine = make("engines", model.engine, Engine, sampling=model.sampling, **model.options)
    return engine


def open_reader(model: ModelSpec, questions: Path, arms: Mapping[str, Arm]) -> Engine:
    """Return the person or simulated reader of a model configuration."""
    if model.answers_from == "readings":
        return Person(readings_of(model))
    return _make(model, AnswerKey.of(questions, arms) if model.answers_from == "truth" else AnswerKey())


def check_readers(spec: SweepSpec) -> None:
    """Check the options of all simulated readers of a sweep before anything runs; else InputError."""
    for model in spec.model:
        if model.simulated:
            _make(model, AnswerKey())


def _make(model: ModelSpec, truth: AnswerKey) -> Simulated:
    """Make a simulated reader; InputError with the legal options if one does not fit."""
    if model.plugged:
        group, word = engine_plugin(model.engine)
        plugged: SimulatedReader = make(group, word, SimulatedReader, truth, **model.options)
        return Simulated(plugged.say)
    reader = READERS[model.engine]
    _, _, *parameters = inspect.signature(reader).parameters.values()
    fields: dict[str, Any] = {
        each.name: (each.annotation, ... if each.default is each.empty else each.default)
        for each in parameters
    }
    legal = create_model(model.engine, __base__=Spec, **fields)
    options = validated(legal, model.options, f"model {model.name}: options: ").model_dump()
    return Simulated(partial(_reply, partial(reader, truth, **options)), options.get("seconds", 0.0))


def _reply(reader: Callable[[Ask], TrueAnswer | str], ask: Ask) -> str:
    answer = reader(ask)
    return answer if isinstance(answer, str) else _displayed(answer, ask)


def _question(ask: Ask) -> str:
    """Return the qa_id of a request to a reader of the truth or of readings."""
    assert ask.qa_id is not None, "requests to readers of the truth or of readings have a qa_id"
    return ask.qa_id


def _draw(seed: int, ask: Ask, label: str = "") -> float:
    """Return a uniform number in 0..1 that depends only on seed, request key and label."""
    digest = hashlib.sha256(f"{seed}|{ask.request_key}|{label}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _displayed(answer: TrueAnswer, ask: Ask) -> str:
    """Return an answer as a reply in displayed letters; those to open questions as they are."""
    if ask.answer_type == "report":
        return answer[0]
    if ask.answer_type == "number":
        return f"ANSWER: {answer[0]}"
    if ask.answer_type == "ranking":
        return f"ANSWER:\n1. {answer[0]}"
    letters = sorted(letters_of(ask.option_keys)[ask.option_keys.index(key)] for key in answer)
    nothing = NONE if NONE in ask.constraint.legal else "none"
    return f"ANSWER: {', '.join(letters) or nothing}"
