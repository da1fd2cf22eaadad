"""Simulated readers: engines with a known result that test the whole pipeline. They look at no frame."""

import asyncio
import hashlib
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Literal, Protocol, get_args

from cardiolens.base.entry_points import make
from cardiolens.base.errors import InputError
from cardiolens.config.arms import Arm
from cardiolens.config.model import ModelSpec
from cardiolens.config.plugin_words import engine_plugin
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.engine.ask import (
    FRAMES,
    Ask,
    Engine,
    ErrorKind,
    FrameWork,
    Pictures,
    Reply,
    RequestError,
)
from cardiolens.inference.models.identity import Reading, readings_of
from cardiolens.protocol.dialogue.asking_back import NONE
from cardiolens.protocol.prompts.question import suggested
from cardiolens.protocol.tasks.catalogue import GATES, OPEN
from cardiolens.protocol.tasks.legal import legal_replies, letters_of
from cardiolens.storage import schemas, tables

TrueAnswer = tuple[str, ...]  # original option keys; for a report, its reference as one JSON text

SEED = 2026
Manner = Literal["greedy", "lazy", "illegal"]
"""greedy: as many frames as allowed, in the order of the list; lazy: as few as allowed (one, then none);
illegal: first names of frames that do not exist, then as greedy."""

MANNERS: tuple[Manner, ...] = get_args(Manner)

_NO_FRAMES = ("cine_xyz slice 0 phase 0", "everything")
_FIRST = "This is request 1 of "
_CHOOSES = "chooses"  # option that every simulated reader has
_SECONDS = "seconds"  # option of uniform: how long an answer takes


class Reader:
    """Base of all simulated readers: starts at once, processes no frame and never dies."""

    mortal = False
    _chooses: Manner = "greedy"  # how the reader asks for frames under selector `self`

    async def start(self) -> None:
        pass

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        reply = ask_for_frames(self._chooses, ask) if ask.answer_type == FRAMES else self.say(ask)
        return Reply(text=reply, finish_reason="stop")

    def say(self, ask: Ask) -> str:
        raise NotImplementedError

    def frames(self) -> FrameWork:
        return FrameWork()

    def close(self) -> None:
        pass


Say = Callable[[Ask], str]
"""What a simulated reader says to a request; equal requests get equal replies."""


class Simulated(Reader):
    """A simulated reader as an engine; each answer takes `seconds`."""

    def __init__(self, say: Say, chooses: Manner = "greedy", seconds: float = 0.0) -> None:
        self._say, self._chooses, self._seconds = say, chooses, seconds

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        await asyncio.sleep(self._seconds)
        return await super().answer(ask, pictures)

    def say(self, ask: Ask) -> str:
        return self._say(ask)


def uniform(seed: int = SEED) -> Say:
    """Draw one of the legal replies, all equally likely."""

    def say(ask: Ask) -> str:
        legal = ask.constraint.legal or legal_replies(ask.answer_type, ask.option_keys, ())
        return f"ANSWER: {legal[int(_draw(seed, ask) * len(legal))]}" if legal else "{}"

    return say


def constant(answer: str) -> Say:
    """Always give the same reply: one displayed letter."""
    return lambda ask: f"ANSWER: {answer}"


class Constant(Simulated):
    """The reader `constant` as an engine."""

    def __init__(self, answer: str) -> None:
        super().__init__(constant(answer))


class Person(Reader):
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
        text = _displayed(reading.answer, ask) if reading.answer else "I cannot tell."
        return Reply(text=text, finish_reason="stop", refused=not reading.answer, seconds=reading.seconds)


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """True answers of all questions, and the arms under which the questions are asked."""

    arms: Mapping[str, Arm]  # by arm_id
    answers: Mapping[str, TrueAnswer]  # by qa_id
    subtasks: Mapping[str, str]  # by qa_id
    exclusive: Mapping[str, TrueAnswer]  # by qa_id: options that exclude all others
    of_subtask: Mapping[str, tuple[TrueAnswer, ...]]  # by subtask: one answer per question, by qa_id

    @staticmethod
    def of(questions: Path, arms: Mapping[str, Arm]) -> "AnswerKey":
        """Read the answers from the store's table of questions."""
        columns = ("qa_id", "subtask", "answer", "reference", "exclusive")
        rows = tables.read(questions, schemas.QUESTIONS, columns).sort_by("qa_id").to_pylist()
        answers = {
            row["qa_id"]: (row["reference"],) if row["reference"] else tuple(row["answer"]) for row in rows
        }
        by_subtask: dict[str, list[TrueAnswer]] = {}
        for row in rows:
            by_subtask.setdefault(row["subtask"], []).append(answers[row["qa_id"]])
        return AnswerKey(
            arms=arms,
            answers=answers,
            subtasks={row["qa_id"]: row["subtask"] for row in rows},
            exclusive={row["qa_id"]: tuple(row["exclusive"] or ()) for row in rows},
            of_subtask={subtask: tuple(subtask_rows) for subtask, subtask_rows in by_subtask.items()},
        )


def _by_truth(truth: AnswerKey, pick: Callable[[Ask, TrueAnswer], TrueAnswer]) -> Say:
    """Return a reader that answers what it picks, given the true answer."""
    return lambda ask: _displayed(pick(ask, truth.answers[_question(ask)]), ask)


def _alike(truth: AnswerKey, ask: Ask) -> tuple[TrueAnswer, ...]:
    """Return the true answers of all questions of the request's subtask."""
    return truth.of_subtask[truth.subtasks[_question(ask)]]


def oracle(truth: AnswerKey) -> Say:
    """Give the true answer."""
    return _by_truth(truth, lambda ask, answer: answer)


def prevalence(truth: AnswerKey, seed: int = SEED) -> Say:
    """Give the true answer of a random question of the subtask: right by frequency alone."""

    def pick(ask: Ask, answer: TrueAnswer) -> TrueAnswer:
        alike = _alike(truth, ask)
        return alike[int(_draw(seed, ask) * len(alike))]

    return _by_truth(truth, pick)


def noisy(truth: AnswerKey, error: float, follows: float = 0.0, seed: int = SEED) -> Say:
    """With probability `error`, give one of the wrong legal replies, all equally likely.

    Under a leading control, give the suggested option alone with probability `follows`. Answers to open
    questions are always right.
    """
    error, follows = _share("error", error), _share("follows", follows)

    def pick(ask: Ask, answer: TrueAnswer) -> TrueAnswer:
        control = truth.arms[str(ask.arm_id)].control if ask.arm_id else ""
        suggestion = suggested(control, _question(ask), ask.option_keys, answer)
        if suggestion and _draw(seed, ask, "follows") < follows:
            return (suggestion,)
        if _draw(seed, ask) >= error:
            return answer
        return _other(ask, answer, truth.exclusive[_question(ask)], seed)

    return _by_truth(truth, pick)


def collapse(truth: AnswerKey, share: float, seed: int = SEED) -> Say:
    """With probability `share`, give the subtask's most frequent true answer; reports are always right."""
    share = _share("share", share)

    def pick(ask: Ask, answer: TrueAnswer) -> TrueAnswer:
        if ask.answer_type == "report" or _draw(seed, ask) >= share:
            return answer
        counts = Counter(_alike(truth, ask))
        return max(sorted(counts), key=counts.__getitem__)

    return _by_truth(truth, pick)


def conservative(truth: AnswerKey, drop: float, seed: int = SEED) -> Say:
    """Withhold findings with probability `drop`.

    In multi-select, each true option except exclusive ones (normal) has its own draw; no option is added, so
    precision stays at 100. A reply with all options withheld says "none". In single-choice, only the gates
    are affected: the reader answers with their first option, normal.
    """
    drop = _share("drop", drop)

    def pick(ask: Ask, answer: TrueAnswer) -> TrueAnswer:
        if ask.answer_type == "multi":
            exclusive = truth.exclusive[_question(ask)]
            return tuple(key for key in answer if key in exclusive or _draw(seed, ask, key) >= drop)
        gate = truth.subtasks[_question(ask)] in GATES
        return (min(ask.option_keys),) if gate and _draw(seed, ask) < drop else answer

    return _by_truth(truth, pick)


def budget_effect(
    truth: AnswerKey, base: float, doubling: float = 0.0, clinical: float = 0.0, blind: float = 0.0
) -> Say:
    """Be right with probability base + doubling * log2(K / 8), where K is the arm's budget.

    A clinical selector adds `clinical`. Without frames the probability is `blind`. A wrong answer is one of
    the other legal replies.
    """

    def probability(ask: Ask) -> float:
        if not ask.frame_keys:
            return blind
        arm = truth.arms[str(ask.arm_id)]
        n_frames = arm.budget if isinstance(arm.budget, int) else len(ask.frame_keys)
        return base + doubling * math.log2(n_frames / 8) + (arm.selector.kind == "clinical") * clinical

    def pick(ask: Ask, answer: TrueAnswer) -> TrueAnswer:
        if _draw(SEED, ask) < probability(ask):
            return answer
        return _other(ask, answer, truth.exclusive[_question(ask)], SEED)

    return _by_truth(truth, pick)


def measuring(
    truth: AnswerKey, bias: float = 0.0, spread: float = 0.0, place: int = 1, seed: int = SEED
) -> Say:
    """Be wrong by a known amount on open questions, and right on all others.

    A number is the true one plus `bias` plus a normal error of standard deviation `spread`, in the unit and
    with the decimals of the truth; it stays at or above 0. A ranking has the true name in place `place`.
    """

    def say(ask: Ask) -> str:
        answer = truth.answers[_question(ask)]
        if ask.answer_type == "ranking":
            names = [f"another name {number}" for number in range(1, place)] + [answer[0]]
            return "ANSWER:\n" + "\n".join(f"{at}. {name}" for at, name in enumerate(names, start=1))
        if ask.answer_type != "number":
            return _displayed(answer, ask)
        number, _, unit = answer[0].partition(" ")
        error = bias + spread * NormalDist().inv_cdf(max(_draw(seed, ask), 1e-12))
        decimals = len(number.partition(".")[2])
        return f"ANSWER: {max(float(number) + error, 0.0):.{decimals}f} {unit}"

    return say


READERS: dict[str, Callable[..., Say]] = {
    made.__name__: made
    for made in (
        *(oracle, uniform, prevalence, constant, noisy, collapse, conservative),
        *(budget_effect, measuring),
    )
}


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


def open_reader(model: ModelSpec, questions: Path, arms: Mapping[str, Arm]) -> Reader:
    """Return the person or simulated reader of a model configuration."""
    if model.answers_from == "readings":
        return Person(readings_of(model))
    return _make(model, AnswerKey.of(questions, arms) if model.answers_from == "truth" else None)


def check_readers(spec: SweepSpec) -> None:
    """Check the options of all simulated readers of a sweep before anything runs; else InputError."""
    for model in spec.model:
        if model.simulated:
            check_reader(model)


def check_reader(model: ModelSpec) -> None:
    """Check the options of the model's reader; InputError with the legal options if one does not fit."""
    _make(model, AnswerKey({}, {}, {}, {}, {}) if model.answers_from == "truth" else None)


def ask_for_frames(manner: Manner, ask: Ask) -> str:
    """Reply to a request that offers frames; the offered names come from the decoding constraint."""
    naming = ask.constraint.naming
    assert naming is not None, "the constraint of a request that offers frames lists their names"
    names = naming.names[: naming.most]
    if manner == "lazy":
        names = naming.names[: naming.least]
    if manner == "illegal" and _FIRST in ask.text:
        names = _NO_FRAMES
    return json.dumps({"frames": names})


def _make(model: ModelSpec, truth: AnswerKey | None) -> Reader:
    options = dict(model.options)
    chooses = options.pop(_CHOOSES, "greedy")
    if chooses not in MANNERS:
        raise InputError(
            f"model {model.name}: option {_CHOOSES}: {chooses!r} is not one of {', '.join(MANNERS)}"
        )
    if model.plugged:
        group, word = engine_plugin(model.engine)
        plugged: SimulatedReader = make(group, word, SimulatedReader, truth, **options)
        return Simulated(plugged.say, chooses)
    seconds = options.pop(_SECONDS, 0.0) if model.engine == "uniform" else 0.0
    if isinstance(seconds, str):
        raise InputError(f"model {model.name}: option {_SECONDS}: {seconds!r} is not a number")
    made = READERS[model.engine]
    signature = inspect.signature(made)
    positional = [] if truth is None else [truth]
    try:
        signature.bind(*positional, **options)
    except TypeError:
        legal = [name for name in (*signature.parameters, _CHOOSES) if name != "truth"]
        raise InputError(
            f"model {model.name}: options {sorted(model.options)} do not fit engine {model.engine!r}; "
            f"it takes {', '.join(legal) or 'no options'}"
        ) from None
    return Simulated(made(*positional, **options), chooses, seconds)


def _share(name: str, value: float | str) -> float:
    if isinstance(value, str) or not 0 <= value <= 1:
        raise InputError(f"option {name}: {value} is not a probability; give a number within 0..1")
    return value


def _question(ask: Ask) -> str:
    """Return the qa_id of a request to a reader of the truth or of readings."""
    assert ask.qa_id is not None, "requests to readers of the truth or of readings have a qa_id"
    return ask.qa_id


def _draw(seed: int, ask: Ask, label: str = "") -> float:
    """Return a uniform number in 0..1 that depends only on seed, request key and label."""
    digest = hashlib.sha256(f"{seed}|{ask.request_key}|{label}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _other(ask: Ask, answer: TrueAnswer, exclusive: TrueAnswer, seed: int) -> TrueAnswer:
    """Draw a wrong legal answer, all equally likely; an open question has none and stays unchanged."""
    if ask.answer_type in OPEN:
        return answer
    text_by_key = dict(zip(letters_of(ask.option_keys), ask.option_keys, strict=True))
    legal = legal_replies(ask.answer_type, ask.option_keys, exclusive)
    replies = [tuple(text_by_key[letter] for letter in reply.split(", ")) for reply in legal]
    wrong_replies = [reply for reply in replies if set(reply) != set(answer)]
    return wrong_replies[int(_draw(seed, ask, "wrong") * len(wrong_replies))]


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
