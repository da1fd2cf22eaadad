"""The chat format of a model: its prompt string, and the count of its tokens without running it."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import TemplateError

from cardiolens.errors import InputError
from cardiolens.tables import FRAME

_HERE = "\ue000"  # private-use characters that mark the places of text
_THERE = "\ue001"
_CACHED_TEXTS = 1 << 18  # entries of the cache of token counts
_ANOTHER_TEMPLATE = "put one that can be used into the folder as chat_template.jinja"


class Chat:
    """Chat template, tokenizer and image processor of one model folder."""

    def __init__(
        self,
        folder: Path,
        template_options: Mapping[str, bool | int | str] | None = None,
        *,
        trust_remote_code: bool = False,
    ) -> None:
        from transformers import AutoProcessor

        self._folder, self._options = folder, dict(template_options or {})
        try:
            self._processor: Any = AutoProcessor.from_pretrained(folder, trust_remote_code=trust_remote_code)
        except (OSError, ValueError, ImportError, TypeError, AttributeError, LookupError) as error:
            reason = " ".join(str(error).split())
            raise InputError(
                f"{folder}: its processor cannot be loaded ({reason}); is it a vision-language model?"
            ) from error
        self._tokenizer: Any = getattr(self._processor, "tokenizer", None)
        if self._tokenizer is None or not (self._processor.chat_template or self._tokenizer.chat_template):
            raise InputError(
                f"{folder}: has no chat template; add a chat_template.jinja to the model's folder"
            )
        self.placeholder = self._find_placeholder()
        self._head = lru_cache(maxsize=4096)(self._render_head)
        self._cached: dict[str, int] = {}  # tokens by text: captions and questions recur
        self._head_tokens = lru_cache(maxsize=4096)(self._count_head)
        self.image_tokens = lru_cache(maxsize=None)(self._count_image)

    def prompt(self, system: str, text: str) -> str:
        """The prompt string for the engine, with the model's image placeholder in place of each frame."""
        if FRAME not in text:
            return self._render(system, [{"type": "text", "text": text}])
        frames, _, question = text.rpartition(FRAME)
        head, tail = self._head(system, frames)
        return f"{head}{question}{tail}"

    def count(self, system: str, text: str, sizes: tuple[tuple[int, int], ...], *, exact: bool = True) -> int:
        """Prompt tokens of a message whose frames have the given (height, width).

        With `exact` the count is that of the engine. Without it, the number of a caption ("Frame 12:") and
        its words are counted separately and cached, since both recur. This is several times faster, and
        equal for tokenizers that never join tokens across a colon and a space.
        """
        if FRAME not in text:
            return self._tokens([self._render(system, [{"type": "text", "text": text}])])
        frames, _, question = text.rpartition(FRAME)
        shown, tail = self.count_shown(system, frames, sizes, exact=exact)
        return shown + self.count_asked(f"{question}{tail}")

    def count_shown(
        self, system: str, frames: str, sizes: tuple[tuple[int, int], ...], *, exact: bool
    ) -> tuple[int, str]:
        """Tokens up to the last frame, and the text that the model's template adds after the question.

        `frames` is the message up to the place of the last frame.
        """
        tail = self._head(system, frames)[1]
        return self._head_tokens(system, frames, exact) + sum(map(self.image_tokens, sizes)), tail

    def count_asked(self, question: str) -> int:
        """Tokens of the text after the last frame."""
        return self._tokens([question])

    def _render_head(self, system: str, frames: str) -> tuple[str, str]:
        """The rendered text before and after the question; `frames` ends before the last frame's place."""
        parts: list[dict[str, str]] = []
        for piece in frames.split(FRAME):
            if piece:
                parts.append({"type": "text", "text": piece})
            parts.append({"type": "image"})
        whole = self._render(system, [*parts, {"type": "text", "text": _HERE}])
        head, mark, tail = whole.partition(_HERE)
        if not mark:
            raise InputError(
                f"{self._folder}: its chat template drops text that follows images; {_ANOTHER_TEMPLATE}"
            )
        return head, tail

    def _render(self, system: str, content: list[dict[str, str]]) -> str:
        messages = [
            {"role": "system", "content": [{"type": "text", "text": system}]},
            {"role": "user", "content": content},
        ]
        try:
            rendered = self._processor.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._options
            )
        except (TemplateError, TypeError, ValueError, LookupError) as error:
            raise InputError(
                f"{self._folder}: its chat template cannot be rendered ({error}) with a system message and "
                f"a user message of texts and images; {_ANOTHER_TEMPLATE}"
            ) from error
        return str(rendered)

    def _find_placeholder(self) -> str:
        parts = [{"type": "text", "text": _HERE}, {"type": "image"}, {"type": "text", "text": _THERE}]
        between = self._render("", parts).partition(_HERE)[2].partition(_THERE)[0]
        if not between.strip():
            raise InputError(
                f"{self._folder}: its chat template puts no image between texts; {_ANOTHER_TEMPLATE}"
            )
        return between

    def _tokens(self, texts: list[str]) -> int:
        """Sum of the tokens of texts; those not yet cached are tokenized in one batch, which is faster."""
        new = list({text for text in texts if text not in self._cached})
        if new:
            if len(self._cached) > _CACHED_TEXTS:
                self._cached.clear()
                new = list(set(texts))
            encoded = self._tokenizer(new, add_special_tokens=False)["input_ids"]
            self._cached.update(zip(new, map(len, encoded), strict=True))
        return sum(self._cached[text] for text in texts)

    def _count_head(self, system: str, frames: str, exact: bool) -> int:
        pieces = [piece for piece in self._head(system, frames)[0].split(self.placeholder) if piece]
        return self._tokens(pieces if exact else [half for piece in pieces for half in _halves(piece)])

    def _count_image(self, size: tuple[int, int]) -> int:
        """Tokens that the model's processor makes of one frame of (height, width), wrappers included."""
        one = self._processor(
            text=[f"{_HERE}{self.placeholder}{_THERE}"],
            images=[np.zeros((*size, 3), dtype=np.uint8)],
            add_special_tokens=False,
        )["input_ids"][0]
        return len(one) - self._tokens([_HERE, _THERE])


def _halves(caption: str) -> tuple[str, ...]:
    number, colon, words = caption.partition(": ")
    return (f"{number}:", f" {words}") if colon else (caption,)
