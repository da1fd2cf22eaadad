"""Reasoning and answer of a model that thinks, apart: by the parser of vLLM that the model's file names."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from cardiolens.base.errors import RunError
from cardiolens.config.model import ModelSpec

if TYPE_CHECKING:
    from vllm.reasoning import ReasoningParser

_HARMONY = "openai_gptoss"  # in vLLM it marks where reasoning ends, and does not separate a whole text
_CHANNEL, _MESSAGE = "<|channel|>", "<|message|>"
_FINAL = f"{_CHANNEL}final"
_ANSWER_MARKS = re.compile(r"box|answer")  # marks around the answer itself, by which a reply is read


class ReasoningSplit:
    """Separates the texts of one model, written with their special tokens."""

    def __init__(self, parser: "ReasoningParser | None", special_tokens: Iterable[str]) -> None:
        self._parser = parser  # None: harmony
        self._special_tokens = [token for token in special_tokens if not _ANSWER_MARKS.search(token)]

    @staticmethod
    def of(model: ModelSpec, tokenizer: Any) -> "ReasoningSplit":
        """Make the parser that a model names; RunError if there is none, or if it needs other tokens."""
        from vllm.reasoning import ReasoningParserManager

        special_tokens = tokenizer.all_special_tokens
        if model.reasoning_parser == _HARMONY:
            return ReasoningSplit(None, special_tokens)
        legal = ReasoningParserManager.list_registered()
        if model.reasoning_parser not in legal:
            raise RunError(
                f"model {model.name}: reasoning_parser {model.reasoning_parser!r} is not one of vLLM's: "
                f"{', '.join(sorted(legal))}; correct it in conf/model/{model.name}.yaml"
            )
        kind = ReasoningParserManager.get_reasoning_parser(model.reasoning_parser)
        try:
            parser = kind(tokenizer, chat_template_kwargs=dict(model.template_options))
        except Exception as error:  # parsers raise what they like about a vocabulary without their marks
            raise RunError(
                f"model {model.name}: vLLM's reasoning_parser {model.reasoning_parser!r} does not fit its "
                f"tokenizer ({error}); name the parser of its family"
            ) from error
        return ReasoningSplit(parser, special_tokens)

    def __call__(self, text: str) -> tuple[str | None, str]:
        """Return the reasoning of a text, None without any, and its answer, empty if cut before one."""
        reasoning, answer = self._separate(text)
        return self._without_marks(reasoning) or None, self._without_marks(answer)

    def _separate(self, text: str) -> tuple[str | None, str | None]:
        if self._parser is None:
            reasoning, final, answer = text.rpartition(_FINAL)
            if not final:
                return (text, "") if _CHANNEL in text else (None, text)
            return reasoning, answer.partition(_MESSAGE)[2]
        from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest

        reasoning, answer = self._parser.extract_reasoning(text, ChatCompletionRequest(messages=[], model=""))
        return reasoning, answer

    def _without_marks(self, text: str | None) -> str:
        for token in self._special_tokens:
            text = (text or "").replace(token, "")
        return (text or "").strip()
