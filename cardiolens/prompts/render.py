"""A question and its frames as the messages that a model is given."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from cardiolens.prompts.frames import CaptionLevel, frame_block
from cardiolens.prompts.question import AskedQuestion
from cardiolens.prompts.template import Style, Template, check_folder, question_template, system_template
from cardiolens.select.selection import Frame
from cardiolens.study.structure import StudyStructure


@dataclass(frozen=True, slots=True)
class Prompt:
    """System and user message; U+FFFC stands where a frame stands."""

    system: str
    text: str
    template: str


@dataclass(frozen=True, slots=True)
class Prompting:
    """How a sweep asks: captions, and templates of which a user's own are searched first."""

    caption: CaptionLevel = "view"
    folder: Path | None = None
    shows_frames: bool = True  # False: the question-only control

    def __post_init__(self) -> None:
        if self.folder is not None:
            check_folder(self.folder)

    @property
    def system(self) -> str:
        """The system message: one for all questions, so that what follows can be shared."""
        return _system(self.folder, self.shows_frames)

    def frames(self, frames: Sequence[Frame], structure: StudyStructure) -> str:
        """The frames with their captions; knows neither their budget nor a question."""
        return frame_block(frames, structure, self.caption)

    def question(self, asked: AskedQuestion, n_frames: int, style: Style) -> tuple[str, str]:
        """Everything after the frames, and the name of the template that said it."""
        template = question_template(asked.kind, style, self.folder, frames=self.shows_frames)
        return question_block(asked, n_frames, template), template.name

    def prompt(
        self, asked: AskedQuestion, frames: Sequence[Frame], structure: StudyStructure, style: Style
    ) -> Prompt:
        """The whole prompt of one question."""
        ending, template = self.question(asked, len(frames), style)
        return Prompt(self.system, self.frames(frames, structure) + ending, template)


@cache
def _system(folder: Path | None, frames: bool) -> str:
    return system_template(folder, frames=frames).render({})


@lru_cache(maxsize=8192)
def question_block(asked: AskedQuestion, n_frames: int, template: Template) -> str:
    """Everything after the frames."""
    return template.render(
        {
            "n": n_frames,
            "subtask": asked.subtask,
            "sequence": asked.sequence_name,
            "question": asked.question,
            "rule": asked.rule,
            "options": [{"letter": letter, "text": text} for letter, text in asked.displayed],
            "checklist": asked.checklist,
            "schema": asked.schema,
        }
    )
