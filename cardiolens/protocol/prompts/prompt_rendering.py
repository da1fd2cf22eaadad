"""Rendering of a question and its frames as messages to a model."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from cardiolens.protocol.prompts.frames import CaptionLevel, frame_block
from cardiolens.protocol.prompts.prompt_words import words
from cardiolens.protocol.prompts.question import AskedQuestion
from cardiolens.protocol.prompts.template import Template
from cardiolens.protocol.select.selection import Frame
from cardiolens.study.structure import StudyStructure

Closing = Literal["letters", "json"]
_ENDINGS = {"multi": "several", "number": "number", "ranking": "ranking"}  # by answer type; others: one


@dataclass(frozen=True, slots=True)
class Prompt:
    """System and user message; U+FFFC marks the place of a frame."""

    system: str
    text: str
    template: str


def render(
    frames: Sequence[Frame],
    structure: StudyStructure,
    question: AskedQuestion,
    template: Template,
    level: CaptionLevel,
    *,
    closing: Closing = "letters",
) -> Prompt:
    """Render frames and captions first, then the text that depends on their number or on the question."""
    text = frame_block(frames, structure, level) + question_block(question, len(frames), template, closing)
    return Prompt(system_message(template), text, template.name)


def system_message(template: Template) -> str:
    """Return the system message; it is independent of the question, so that requests share it."""
    return template.system


@lru_cache(maxsize=8192)
def question_block(
    question: AskedQuestion, n_frames: int, template: Template, closing: Closing = "letters"
) -> str:
    """Render the text after the frames; `closing` names the required form of the answer."""
    return template.render(
        {
            "n": n_frames,
            "subtask": question.subtask,
            "sequence": question.sequence_name,
            "question": question.question,
            "rule": question.rule,
            "options": [{"letter": letter, "text": text} for letter, text in question.displayed],
            "closing": words().closings[closing][_ENDINGS.get(question.answer_type, "one")],
            "checklist": question.checklist,
            "schema": question.schema,
        }
    )
