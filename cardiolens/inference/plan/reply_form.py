"""The form that a reply must have, and its token limit."""

from cardiolens.config.model import ModelSpec
from cardiolens.config.prompt import PromptSpec
from cardiolens.config.sweep import SweepSpec
from cardiolens.protocol.prompts.prompt_rendering import Closing
from cardiolens.protocol.prompts.question import AskedQuestion


class ReplyForm:
    """The form of the replies of one model in a sweep."""

    def __init__(self, spec: SweepSpec, model: ModelSpec) -> None:
        self._spec = spec
        self._model = model

    @property
    def closing(self) -> Closing:
        """How the prompt says in which form to end."""
        return "json" if self._spec.answer_format == "json" else "letters"

    def format_of(self, question: AskedQuestion, prompt: PromptSpec) -> str:
        """Return the form of the reply: only legal letters if direct, a line of them if reasoned."""
        if question.answer_type in ("number", "ranking"):
            return "json" if self._spec.answer_format == "json" else "letters"
        if question.answer_type == "report" or self._spec.answer_format != "choice":
            return self._spec.answer_format if question.answer_type != "report" else "json"
        reasoned = "first_line" if question.letters_first else "last_line"
        return "choice" if prompt.style == "standard" else reasoned

    def max_tokens(self, question: AskedQuestion, prompt: PromptSpec) -> int:
        """Return the token limit of the reply: the model's for this prompt, else at least its style's.

        A model that thinks declares what a style needs (`standard: 4096`), or any other prompt
        of the style would cut its replies. Videos have the limit of the frames that they are compared with.
        """
        if question.answer_type == "report":
            return self._model.max_tokens.get("report", prompt.report_max_tokens)
        if prompt.name in self._model.max_tokens:
            return self._model.max_tokens[prompt.name]
        by_style = self._by_style(prompt)
        return by_style if by_style and prompt.cine == "video" else max(by_style, prompt.max_tokens)

    def step_max_tokens(self, prompt: PromptSpec) -> int:
        """Return the token limit of the reply to a step, at least the model's for the style of the prompt."""
        return max(self._by_style(prompt), prompt.step_max_tokens)

    def _by_style(self, prompt: PromptSpec) -> int:
        """Token limit that the model declares for prompts of this style; 0 if it declares none."""
        return self._model.max_tokens.get("standard" if prompt.style == "standard" else "reasoning", 0)
