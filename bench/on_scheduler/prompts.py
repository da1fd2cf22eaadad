"""The prompts of a real plan as tokens: words by their letters, frames by their identity.

The plan is that of a cohort of default phantoms with the questions of phantom_ci, as in bench/plan_full.py.
No tokenizer is needed: a word, a number and a sign are a token each, and a frame has as many tokens as it
is told.
"""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from bench.plan_rows import read_requests
from cardiolens.config.compose import read_spec
from cardiolens.inference.plan.missing import Missing, StudyWork, missing
from cardiolens.inference.plan.plan import Plan, plan
from cardiolens.inference.plan.request import Request
from cardiolens.storage.schemas import FRAME

_WORDS = re.compile(r"\w+|[^\w\s]")
_TEXT = 1 << 20  # numbers of words lie below, numbers of frames' tokens above
_FRAME_ROOM = 1 << 14  # tokens that a frame may have at most


class ShownFrame(NamedTuple):
    """A frame in a prompt."""

    key: str
    offset: int
    length: int


class Prompt(NamedTuple):
    """A prompt as an engine sees it."""

    tokens: list[int]
    frames: list[ShownFrame]


@dataclass
class Tokens:
    """Turns requests into prompts; the same word and the same frame always have the same tokens."""

    frame_tokens: int
    grain: int = 1  # words to a token: a coarse simulation has all sizes divided by it
    _words: dict[str, int] = field(default_factory=dict)
    _frames: dict[str, int] = field(default_factory=dict)

    def prompt(self, request: Request) -> Prompt:
        tokens, shown = self._text(request.system), list[ShownFrame]()
        pieces = request.prompt.split(FRAME)
        for number, piece in enumerate(pieces):
            tokens += self._text(piece)
            if number < len(pieces) - 1:
                frame = request.frames[number]
                key = f"{request.frames_study_id}/{frame.volume_id}/{frame.idx}"
                first = _TEXT + self._frames.setdefault(key, len(self._frames)) * _FRAME_ROOM
                shown.append(ShownFrame(key, len(tokens), self.frame_tokens))
                tokens += range(first, first + self.frame_tokens)
        return Prompt(tokens, shown)

    def _text(self, text: str) -> list[int]:
        words = _WORDS.findall(text)
        joined = (" ".join(words[at : at + self.grain]) for at in range(0, len(words), self.grain))
        return [self._words.setdefault(word, len(self._words)) for word in joined]


def planned_work(folder: Path, studies: int, questions: Path, words: list[str]) -> tuple[Plan, Missing]:
    """Plan a sweep of a reader on so many default phantoms in a folder; return it with all its work."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    import plan_full

    plan_full.N_STUDIES, plan_full.QUESTIONS = studies, questions
    plan_full._write_store(folder / "store")
    plan_full._write_questions(folder / "questions.jsonl")
    places = [f"store={folder}/store", f"outputs={folder}/out", f"dataset.questions={folder}/questions.jsonl"]
    spec = read_spec(["+experiment=full", "model=[constant]", "tracker=none", *words, *places])
    planned = plan(spec)
    left = missing(planned.run.requests("constant"), folder / "nowhere", 1)
    return planned, left


def prompts_of(work: pa.Table, tokens: Tokens) -> Iterator[list[Prompt]]:
    """Yield the prompts of each row of work, in the order in which they are asked."""
    row: StudyWork
    for row in work.to_pylist():
        yield [tokens.prompt(request) for request in read_requests(Path(row["part"]), row["rows"])]
