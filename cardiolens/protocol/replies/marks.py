"""The marks of a final answer in a visible reply: answer lines, phrases, boxes, tags and JSON."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from cardiolens.protocol.replies.reply_words import IS, JSON_KEYS, NOUN_STEMS, NOUNS, OPENINGS
from cardiolens.protocol.replies.visible_reply import BOX, END, SIGN

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
    for sign in reversed(list(SIGN.finditer(text))):
        if sign[0] == END:
            close = sign.start()
            continue
        end = min(close, next_open) if close == len(text) else close
        inner = SIGN.sub(" ", text[sign.end() : end]).strip()
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
