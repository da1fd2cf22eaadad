"""What counts of a reply, in plain characters, and the marks of a final answer in it."""

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from cardiolens.protocol.replies.reply_words import (
    ANSWER_TAGS,
    HIDDEN,
    IS,
    JSON_KEYS,
    NEXT_TURN,
    NOUN_STEMS,
    NOUNS,
    OPENINGS,
    REFUSALS,
)

# Private-use characters around an answer in a box or a tag; replies do not contain them.
BOX, TAG, END = "\ue000", "\ue001", "\ue002"

_SIGN = re.compile(f"[{BOX}{TAG}{END}]")
_HIDDEN = tuple((re.compile(start, re.IGNORECASE), re.compile(end, re.IGNORECASE)) for start, end in HIDDEN)
_NEXT_TURN = re.compile(NEXT_TURN)
_OPENING_TAG = re.compile(rf"<(?:{ANSWER_TAGS})>|<\|begin_of_box\|>", re.IGNORECASE)
_CLOSING_TAG = re.compile(rf"</(?:{ANSWER_TAGS})>|<\|end_of_box\|>", re.IGNORECASE)
_REFUSAL = re.compile(REFUSALS, re.IGNORECASE)
_INVISIBLE = re.compile(r"[\u200b-\u200f\u2060\ufeff\ufe0f]")
_STRUCK = re.compile(r"~~[^~\n]{1,200}~~|<(del|s|strike)>[^<\n]{0,200}</\1>", re.IGNORECASE)
_LATEX_BRACE = re.compile(
    r"(?P<box>\\f?box(?:ed)?\s*\{)|(?P<text>\\(?:text|textbf|textrm|mathrm|mathbf|mathsf|operatorname)\s*\{)"
    r"|(?<!\\)[{}]"
)
_LATEX__SIGN = re.compile(r"\\[()\[\],;:!{} ]|\\quad")
_HTML = re.compile(
    r"</?(?:strong|em|p|br|span|div|li|ul|ol|code|pre|b|i|u|h\d)\b[^<>]{0,200}>", re.IGNORECASE
)
_MARKUP = re.compile(
    r"[*`$\r]|__|^[ \t]*(?:#{1,6}|>)[ \t]*|<br ?/?>|<\|start\|>assistant|<\|/?\w{1,40}\|?>",
    re.IGNORECASE | re.MULTILINE,
)


def visible(reply: str) -> str:
    """The text of a reply that may hold its answer; boxes and tags are marked by BOX, TAG and END."""
    text = _without_hidden(_STRUCK.sub(" ", reply))
    if (turn := _NEXT_TURN.search(text)) and text[: turn.start()].strip():
        text = text[: turn.start()]
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).replace("’", "'")
    if "\\" in text or "$" in text:
        text = _without_latex(text)
    if "<" in text:
        text = _CLOSING_TAG.sub(END, _OPENING_TAG.sub(TAG, text))
        text = _HTML.sub("", text) if "</" in text else text
    return _MARKUP.sub("", text).strip()


def visible_text(reply: str) -> str:
    """The text of a reply that may hold its answer, without the marks of boxes and tags."""
    return _SIGN.sub(" ", visible(reply)).strip()


def refuses(text: str) -> bool:
    """Whether a visible reply declines to answer."""
    return _REFUSAL.search(text) is not None


def _without_hidden(text: str) -> str:
    for opening, closing in _HIDDEN:
        before = ""
        while opened := opening.search(text):
            before += closing.split(text[: opened.start()])[-1]
            closed = closing.search(text, opened.end())
            text = text[closed.end() :] if closed else ""
        text = before + closing.split(text)[-1]
    return text


def _without_latex(text: str) -> str:
    """Mark boxes and unwrap text commands, by one walk over the braces."""
    pieces, closings, position = list[str](), list[str](), 0
    for brace in _LATEX_BRACE.finditer(text):
        pieces.append(text[position : brace.start()])
        position = brace.end()
        if brace[0] == "}":
            pieces.append(closings.pop() if closings else "}")
        else:
            opening, closing = (BOX, END) if brace["box"] else ("", "") if brace["text"] else ("{", "}")
            pieces.append(opening)
            closings.append(closing)
    return _LATEX__SIGN.sub(" ", "".join([*pieces, text[position:]]))


_DECODER = json.JSONDecoder()
_BRACE = re.compile(r'\{(?=\s*+["}])')  # a failure elsewhere would cost the length of the text


class PlacedObject(NamedTuple):
    """A JSON object and its place in a text."""

    value: dict[str, Any]
    start: int
    end: int


def objects(text: str) -> Iterator[PlacedObject]:
    """Yield the outermost well-formed objects of a text in order."""
    position = 0
    while brace := _BRACE.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, brace.start())
        except ValueError:
            position = brace.end()
            continue
        except RecursionError:  # no answer is a thousand levels deep
            return
        yield PlacedObject(value, brace.start(), position)


MarkRule = Literal["answer_line", "json", "boxed", "answer_tag", "answer_phrase"]
EXPLICIT = frozenset({"answer_line", "json", "boxed", "answer_tag"})  # all that count in a cut reply

_JOINING_SIGNS = frozenset(":=")

# An answer's noun at the beginning of a line or sentence, and what joins it to the letters. Also twice, as in
# "Final answer: The answer is B."
_ABOUT_FORM = r"(?:[ \t]*\([^()\n]{0,20}\b(?:letters?|options?|only)\b[^()\n]{0,20}\))?"
_JOINED = rf"(?:[:=]|(?:{IS})[ \t]*:?)"
_ALONE = r"(?=\n\s*\S)|(?=[ \t]\(?[A-Z]\)?[.]?[ \t]*(?:\n|$))"
_INTRODUCTION = re.compile(
    rf"(?:^|(?<=[.!?。)\]{END}])\s|(?<=[,;])[ \t](?=(?:so|thus|therefore|hence)\b))"
    rf"[^\w\n\"'“”‘’(]{{0,12}}+(?:(?:{OPENINGS})[,:]?[ \t]+)?"
    rf"(?P<noun>{NOUNS}){_ABOUT_FORM}[ \t]*"
    rf"(?:(?P<joined>{_JOINED})(?:\s*(?:{NOUNS})[ \t]*{_JOINED})?|{_ALONE})",
    re.IGNORECASE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Mark:
    """A place that says what the answer is: `value` of a box, a tag or JSON, else the text from `end`."""

    rule: MarkRule
    start: int
    end: int
    value: str | None = None
    is_closed: bool = True


def marks(text: str) -> list[Mark]:
    """All marks in order; what stands within a JSON answer, a box or a tag is no mark of its own."""
    places = sorted(
        [*_introduced(text), *_boxes(text), *_json_answers(text)], key=lambda mark: (mark.start, -mark.end)
    )
    outer: list[Mark] = []
    covered = 0  # where the last JSON answer, box or tag ends
    for mark in places:
        if mark.start < covered and mark.start != outer[-1].start:  # one object may have several answers
            continue
        if mark.value is not None:
            covered = mark.end
            if outer and outer[-1].value is None and not text[outer[-1].end : mark.start].strip(" \t\n:"):
                outer.pop()  # "ANSWER: \boxed{B}" is one mark
        outer.append(mark)
    return outer


def _introduced(text: str) -> list[Mark]:
    """Answer lines and phrases, searched for from the first line with a noun on, which saves time."""
    lower = text.lower()
    places = [place for stem in NOUN_STEMS if (place := lower.find(stem)) >= 0]
    if not places:
        return []
    is_aligned = len(lower) == len(text)  # a dotted capital I becomes two characters
    start = text.rfind("\n", 0, min(places)) + 1 if is_aligned else 0
    return [
        Mark(
            "answer_line" if (match["joined"] or "")[-1:] in _JOINING_SIGNS else "answer_phrase",
            match.start("noun"),
            match.end(),
        )
        for match in _INTRODUCTION.finditer(text, start)
    ]


def _boxes(text: str) -> list[Mark]:
    """Boxes and tags; one that is never closed ends where the next one opens."""
    places: list[Mark] = []
    close = next_open = len(text)
    for sign in reversed(list(_SIGN.finditer(text))):
        if sign[0] == END:
            close = sign.start()
            continue
        end = min(close, next_open) if close == len(text) else close
        inner = _SIGN.sub(" ", text[sign.end() : end]).strip()
        value = _INTRODUCTION.sub("", inner, count=1).strip()  # "ANSWER: B" in a box
        rule: MarkRule = "boxed" if sign[0] == BOX else "answer_tag"
        places.append(Mark(rule, sign.start(), min(end + 1, len(text)), value, is_closed=close < len(text)))
        next_open = sign.start()
    return places


def _json_answers(text: str) -> list[Mark]:
    """The answers of all well-formed objects; an answer of another form is text that names nothing."""
    return [
        Mark("json", placed.start, placed.end, _as_text(value))
        for placed in objects(text)
        for key, value in placed.value.items()
        if re.fullmatch(JSON_KEYS, re.sub(r"[_\s-]", "", key).casefold())
    ]


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return "\n".join(value)
    return "?"
