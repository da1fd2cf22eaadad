"""A model's chat template: find the message form that it accepts, and render prompts with it.

Published templates disagree on this form. Some print a list of parts as Python would, some drop the list,
some put all images before all text. To find the form, each candidate is rendered with marks: the first
candidate that keeps texts and images in their order is used.
"""

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, NamedTuple

from jinja2 import TemplateError

from cardiolens.base.errors import InputError
from cardiolens.storage.model_files import read_object

_BY_ARCHITECTURE = {  # as declared by vLLM's class of the model
    "KimiVLForConditionalGeneration": "<|media_start|>image<|media_content|><|media_pad|><|media_end|>",
    "MiniCPMV": "(<image>./</image>)",
    "Phi3VForCausalLM": "<|image_{number}|>",
    "Phi4MMForCausalLM": "<|image_{number}|>",
}


class Place(Enum):
    """The position of something shown; the value is the type of its part in a message."""

    IMAGE = "image"  # a frame
    VIDEO = "video"


IMAGE, VIDEO = Place.IMAGE, Place.VIDEO
Piece = str | Place

# Marks of text: private-use characters. If a template prints a list instead of reading its parts, the marks
# do not appear, because both Python and JSON escape them.
_SYSTEM, _HERE, _THERE, _ASKED = "\ue000", "\ue001", "\ue002", "\ue003"
_ANOTHER_TEMPLATE = "put one that can be used into the folder as chat_template.jinja"


class _Form(NamedTuple):
    system: Literal["parts", "string"]
    user: Literal["parts", "string", "text"]  # text: one text part that already contains placeholders


_FORMS = (
    _Form("parts", "parts"),
    _Form("string", "parts"),
    _Form("string", "string"),
    _Form("parts", "text"),
    _Form("string", "text"),
)
_FAILURES = (TemplateError, TypeError, ValueError, LookupError, AttributeError)  # of foreign templates
_EDGES: tuple[Callable[[str], str], ...] = (str, str.lstrip, str.rstrip, str.strip)


class ChatTemplate:
    """The chat template of one model folder. InputError if it accepts no form of messages."""

    def __init__(
        self,
        folder: Path,
        processor: Any,
        options: Mapping[str, bool | int | str],
        overrides: Mapping[str, Any] | None = None,
    ) -> None:
        self._folder, self._options = folder, dict(options)
        self.takes_images = hasattr(processor, "tokenizer")  # that of a language model is its tokenizer
        self._owner = processor if getattr(processor, "chat_template", None) else processor.tokenizer
        path = folder / "config.json"
        names = ((read_object(path) if path.exists() else {}) | dict(overrides or {})).get("architectures")
        self.architectures = list(map(str, names)) if isinstance(names, list) else []  # as vLLM uses them
        declared = [_BY_ARCHITECTURE[name] for name in self.architectures if name in _BY_ARCHITECTURE]
        # of one frame, with {number} for its number from 1; None if none is declared
        self._placeholder: str | None = next(iter(declared), getattr(processor, "image_token", None))
        self._form = self._find_form()
        self.marks = lru_cache(maxsize=None)(partial(self._find_marks, IMAGE))
        self.video_marks = lru_cache(maxsize=None)(self._find_video_marks)
        self._edges = self._find_edges()

    def render(self, system: str, pieces: Sequence[Piece]) -> str:
        """Render the prompt of a system message and a user message, up to the start of the reply."""
        return self._rendered(self._form, system, pieces)

    def around(self, system: str, pieces: Sequence[Piece]) -> tuple[str, str]:
        """Render the text before and after a last piece of text that is not yet known."""
        head, _, tail = self.render(system, [*pieces, _ASKED]).partition(_ASKED)
        return head, tail

    def asked(self, text: str) -> str:
        """Return the last text as the template renders it: some templates strip white space at its ends."""
        return self._edges(text)

    def _find_form(self) -> _Form:
        reasons = []
        for form in _FORMS:
            try:
                self._check(form)
                return form
            except _FAILURES as error:
                reasons.append(" ".join(str(error).split()))
        raise InputError(
            f"{self._folder}: its chat template cannot be used ({', '.join(dict.fromkeys(reasons))}) with a "
            f"system message and a user message of texts and images; {_ANOTHER_TEMPLATE}"
        )

    def _check(self, form: _Form) -> None:
        """Render messages of this form; ValueError says what the template does wrong with them."""
        images = self.takes_images
        if images and form.user != "parts" and self._placeholder is None:
            raise ValueError("it takes text alone, and nothing declares the model's image placeholder")
        rendered = self._rendered(
            form, _SYSTEM, [_HERE, IMAGE, _THERE, IMAGE, _ASKED] if images else [_ASKED]
        )
        texts = (_SYSTEM, _HERE, _THERE, _ASKED) if images else (_SYSTEM, _ASKED)
        if any(rendered.count(mark) != 1 for mark in texts):
            raise ValueError("it drops or repeats text")
        if images:
            marks = _between(rendered, _HERE, _THERE).strip(), _between(rendered, _THERE, _ASKED).strip()
            if sum(map(rendered.count, set(marks))) != len(marks):  # "" is everywhere
                raise ValueError("it moves, drops or repeats an image")

    def _rendered(self, form: _Form, system: str, pieces: Sequence[Piece]) -> str:
        system_content = system if form.system == "string" else [{"type": "text", "text": system}]
        messages = [
            {"role": "system", "content": system_content},
            {"role": "user", "content": self._content(form, pieces)},
        ]
        return str(
            self._owner.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True, **self._options
            )
        )

    def _content(self, form: _Form, pieces: Sequence[Piece]) -> str | list[dict[str, str]]:
        if form.user == "parts":
            return [
                {"type": piece.value} if isinstance(piece, Place) else {"type": "text", "text": piece}
                for piece in pieces
            ]
        assert VIDEO not in pieces, "refused when the mark of a video is looked for"
        placeholder, numbers = self._placeholder or "", count(1)
        text = "".join(
            placeholder.replace("{number}", str(next(numbers))) if isinstance(piece, Place) else piece
            for piece in pieces
        )
        return text if form.user == "string" else [{"type": "text", "text": text}]

    def _find_marks(self, place: Place, number: int) -> tuple[str, ...]:
        """Return the text that the rendered prompt has for each of a number of images or videos, in order."""
        pieces: list[Piece] = [_HERE, *(piece for _ in range(number) for piece in (place, _HERE))]
        return tuple(self.render("", pieces).split(_HERE)[1:-1])

    def _find_video_marks(self, number: int) -> tuple[str, ...]:
        """Return the marks of a number of videos. InputError if the template takes no videos."""
        try:
            parts: list[Piece] = [_HERE, VIDEO, _THERE, IMAGE, _ASKED] if self._form.user == "parts" else []
            rendered = self.render("", parts)
        except _FAILURES:
            rendered = ""
        mark = _between(rendered, _HERE, _THERE)
        if not mark.strip() or self.marks(1)[0] in mark:
            raise InputError(
                f"{self._folder}: its chat template puts no video between texts; {_ANOTHER_TEMPLATE}, or "
                "leave out the prompts with cine: video"
            )
        return self._find_marks(VIDEO, number)

    def _find_edges(self) -> Callable[[str], str]:
        if not self.takes_images:
            return str
        marker = f"\n {_THERE} \n"
        head, tail = self.around("", [_HERE, IMAGE])
        rendered = self.render("", [_HERE, IMAGE, marker])
        for edges in _EDGES:
            if rendered == f"{head}{edges(marker)}{tail}":
                return edges
        raise InputError(f"{self._folder}: its chat template changes text after images; {_ANOTHER_TEMPLATE}")


def _between(text: str, here: str, there: str) -> str:
    return text.partition(here)[2].partition(there)[0] if text.find(here) < text.find(there) else ""
