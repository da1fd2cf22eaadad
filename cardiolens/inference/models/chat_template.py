"""A model's chat template: find the message form that it accepts, and render prompts with it.

Published templates disagree on this form. Some print a list of parts as Python would, some drop the list,
some put all images before all text. To find the form, each candidate is rendered with marks: the first
candidate that keeps texts and images in their order is used.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
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
_WITHOUT_SPECIAL = frozenset({"Gemma4ForConditionalGeneration"})


def placeholder(folder: Path, processor: Any, overrides: Mapping[str, Any]) -> str | None:
    """Return the placeholder of one frame, with {number} for its number from 1; None if none is declared.

    Model families without an entry in this module declare the placeholder in their processor.
    """
    for name in architectures(folder, overrides):
        if name in _BY_ARCHITECTURE:
            return _BY_ARCHITECTURE[name]
    declared = getattr(processor, "image_token", None)
    return declared if isinstance(declared, str) else None


def adds_special_tokens(folder: Path, overrides: Mapping[str, Any]) -> bool:
    """Return whether vLLM lets this model's tokenizer add its special tokens to a prompt."""
    return _WITHOUT_SPECIAL.isdisjoint(architectures(folder, overrides))


def architectures(folder: Path, overrides: Mapping[str, Any]) -> list[str]:
    """Return the model classes that config.json names, or the classes in `overrides`, as vLLM uses them."""
    path = folder / "config.json"
    names = ((read_object(path) if path.exists() else {}) | dict(overrides)).get("architectures")
    return [str(name) for name in names] if isinstance(names, list) else []


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
        self.takes_images = hasattr(
            processor, "tokenizer"
        )  # the processor of a language model is its tokenizer
        self._owner = processor if getattr(processor, "chat_template", None) else processor.tokenizer
        self._placeholder = placeholder(folder, processor, overrides or {})
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
                reason = self._fault(form)
            except _FAILURES as error:
                reason = " ".join(str(error).split())
            if reason is None:
                return form
            reasons.append(reason)
        raise InputError(
            f"{self._folder}: its chat template cannot be used ({', '.join(dict.fromkeys(reasons))}) with a "
            f"system message and a user message of texts and images; {_ANOTHER_TEMPLATE}"
        )

    def _fault(self, form: _Form) -> str | None:
        """Return what the template does wrong with messages of this form; None if nothing."""
        if not self.takes_images:
            rendered = self._rendered(form, _SYSTEM, [_ASKED])
            return (
                None if rendered.count(_SYSTEM) == rendered.count(_ASKED) == 1 else "it drops or repeats text"
            )
        if form.user != "parts" and self._placeholder is None:
            return "it takes text alone, and nothing declares the model's image placeholder"
        rendered = self._rendered(form, _SYSTEM, [_HERE, IMAGE, _THERE, IMAGE, _ASKED])
        if any(rendered.count(mark) != 1 for mark in (_SYSTEM, _HERE, _THERE, _ASKED)):
            return "it drops or repeats text"
        image_text = _between(rendered, _HERE, _THERE).strip(), _between(rendered, _THERE, _ASKED).strip()
        if not all(image_text):
            return "it puts no image between texts"
        return None if sum(map(rendered.count, set(image_text))) == len(image_text) else "it repeats an image"

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
        places = self._places()
        assert VIDEO not in pieces, "refused when the mark of a video is looked for"
        text = "".join(next(places) if isinstance(piece, Place) else piece for piece in pieces)
        return text if form.user == "string" else [{"type": "text", "text": text}]

    def _places(self) -> Iterator[str]:
        assert self._placeholder is not None, "checked when the form was found"
        yield from (self._placeholder.replace("{number}", str(number)) for number in count(1))

    def _find_marks(self, place: Place, number: int) -> tuple[str, ...]:
        """Return the text that the rendered prompt has for each of a number of images or videos, in order."""
        pieces: list[Piece] = [_HERE, *(piece for _ in range(number) for piece in (place, _HERE))]
        return tuple(self.render("", pieces).split(_HERE)[1:-1])

    def _find_video_marks(self, number: int) -> tuple[str, ...]:
        """Return the marks of a number of videos. InputError if the template takes no videos."""
        try:
            rendered = self.render("", [_HERE, VIDEO, _THERE, IMAGE, _ASKED]) if self._takes_parts else ""
        except _FAILURES:
            rendered = ""
        mark = _between(rendered, _HERE, _THERE)
        if not mark.strip() or self.marks(1)[0] in mark:
            raise InputError(
                f"{self._folder}: its chat template puts no video between texts; {_ANOTHER_TEMPLATE}, or "
                "leave out the prompts with cine: video"
            )
        return self._find_marks(VIDEO, number)

    @property
    def _takes_parts(self) -> bool:
        return self._form.user == "parts"

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
