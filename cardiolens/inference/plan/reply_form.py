"""The form that a reply must have, and its token limit."""

from cardiolens.config.model import ModelSpec
from cardiolens.config.sweep import PromptSpec, SweepSpec
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
        """Return the form of the reply: only legal letters if direct, a last line of them if reasoned."""
        if question.answer_type == "report" or self._spec.answer_format != "choice":
            return self._spec.answer_format if question.answer_type != "report" else "json"
        return "choice" if prompt.style == "standard" else "last_line"

    def max_tokens(self, question: AskedQuestion, prompt: PromptSpec) -> int:
        """Return the token limit of the reply: the model's own, else that of the prompt."""
        report = question.answer_type == "report"
        declared = self._model.max_tokens.get("report" if report else prompt.name)
        if declared is None and prompt.cine == "video":  # or the limit, too, would differ from the frames'
            declared = self._model.max_tokens.get(prompt.style)
        return declared or (prompt.report_max_tokens if report else prompt.max_tokens)
