"""Simulated readers: engines with a known result, to check the whole pipeline with. They see no frame."""

import hashlib
from pathlib import Path

from cardiolens import tables
from cardiolens.engine.ask import Ask, Pictures, Reply
from cardiolens.errors import InputError
from cardiolens.prompts.legal import LETTERS, legal_replies
from cardiolens.spec import ModelSpec


class Reader:
    """What simulated readers share: they start at once, process no frame and never die."""

    async def start(self) -> None:
        pass

    async def answer(self, ask: Ask, pictures: Pictures) -> Reply:
        return Reply(text=self.say(ask), finish_reason="stop")

    def say(self, ask: Ask) -> str:
        raise NotImplementedError

    def frames_processed(self) -> int:
        return 0

    def close(self) -> None:
        pass


class Oracle(Reader):
    """Knows every answer (`answers_from: truth`)."""

    def __init__(self, questions: Path) -> None:
        columns = ("qa_id", "answer", "reference")
        rows = tables.read(questions, tables.QUESTIONS, columns).to_pylist()
        self._answers = {row["qa_id"]: row["reference"] or row["answer"] for row in rows}

    def say(self, ask: Ask) -> str:
        assert ask.qa_id is not None, "a reader of the truth is told which question it answers"
        answer = self._answers[ask.qa_id]
        if isinstance(answer, str):
            return answer
        shown = (LETTERS[ask.option_keys.index(key)] for key in answer)
        return f"ANSWER: {', '.join(sorted(shown))}"


class Uniform(Reader):
    """Draws one of the legal replies, each as likely; the same for the same request."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    def say(self, ask: Ask) -> str:
        legal = ask.legal or legal_replies(ask.answer_type, ask.option_keys, ())
        if not legal:
            return "{}"
        draw = hashlib.sha256(f"{self._seed}|{ask.request_key}".encode()).digest()
        return f"ANSWER: {legal[int.from_bytes(draw[:8]) % len(legal)]}"


class Constant(Reader):
    """Always gives the same reply."""

    def __init__(self, answer: str) -> None:
        self._reply = f"ANSWER: {answer}"

    def say(self, ask: Ask) -> str:
        return self._reply


def open_reader(model: ModelSpec, questions: Path) -> Reader:
    """The simulated reader that a model configuration names."""
    options = dict(model.options)
    try:
        match model.engine:
            case "oracle":
                return Oracle(questions, **options)
            case "uniform":
                return Uniform(**options)  # type: ignore[arg-type]
            case _:
                return Constant(**options)  # type: ignore[arg-type]
    except TypeError:
        legal = {"oracle": "no options", "uniform": "seed", "constant": "answer"}[model.engine]
        raise InputError(
            f"model {model.name}: options {sorted(options)} do not fit engine {model.engine!r}; "
            f"it takes {legal}"
        ) from None
