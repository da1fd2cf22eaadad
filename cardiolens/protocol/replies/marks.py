"""The marks of a final answer in a visible reply: answer lines, phrases, boxes, tags and JSON."""

import functools
import json
import re
from dataclasses import dataclass
from typing import Literal

from cardiolens.protocol.replies.reply_words import words
from cardiolens.protocol.replies.visible_reply import BOX, END, TAG

MarkRule = Literal["answer_line", "json", "boxed", "answer_tag", "answer_phrase"]
EXPLICIT = frozenset({"answer_line", "json", "boxed", "answer_tag"})  # all that count in a cut reply

_DECODER = json.JSONDecoder()
_BRACE = re.compile(r'\{(?=\s*+["}])')  # failures elsewhere cost the length of the text
_SIGNS = frozenset(":=")
_SIGN = re.compile(f"[{BOX}{TAG}{END}]")


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
    return [
        Mark(
            "answer_line" if (match["joined"] or "")[-1:] in _SIGNS else "answer_phrase",
            match.start("noun"),
            match.end(),
        )
        for match in _introduction().finditer(text)
    ]


@functools.cache
def _introduction() -> re.Pattern[str]:
    """An answer's noun at the beginning of a line or sentence, and what joins it to the letters; also twice.

    "Final answer: The answer is B." has both forms.
    """
    nouns = "|".join(f"(?:{noun})" for noun in words().nouns)
    about_form = r"(?:[ \t]*\([^()\n]{0,20}\b(?:letters?|options?|only)\b[^()\n]{0,20}\))?"
    joins = rf"(?:[:=]|(?:{words().is_})[ \t]*:?)"
    alone = r"(?=\n\s*\S)|(?=[ \t]\(?[A-Z]\)?[.]?[ \t]*(?:\n|$))"
    return re.compile(
        rf"(?:^|(?<=[.!?。)\]{END}])\s|(?<=[,;])[ \t](?=(?:so|thus|therefore|hence)\b))"
        rf"[^\w\n\"'“”‘’(]{{0,12}}+(?:(?:{words().openings})[,:]?[ \t]+)?"
        rf"(?P<noun>{nouns}){about_form}[ \t]*"
        rf"(?:(?P<joined>{joins})(?:\s*(?:{nouns})[ \t]*{joins})?|{alone})",
        re.IGNORECASE | re.MULTILINE,
    )


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
        value = _introduction().sub("", inner, count=1).strip()  # "ANSWER: B" in a box
        rule: MarkRule = "boxed" if sign[0] == BOX else "answer_tag"
        places.append(Mark(rule, sign.start(), min(end + 1, len(text)), value, is_closed=close < len(text)))
        next_open = sign.start()
    return places


def _json_answers(text: str) -> list[Mark]:
    """The answers of all well-formed objects."""
    places, position = [], 0
    while brace := _BRACE.search(text, position):
        try:
            tree, position = _DECODER.raw_decode(text, brace.start())
        except ValueError:
            position = brace.end()
            continue
        except RecursionError:  # no answer is a thousand levels deep
            break
        places += [Mark("json", brace.start(), position, value) for value in _answers_in(tree)]
    return places


def _answers_in(tree: object) -> list[str]:
    """The answer of an object, as text to read; an answer of another form is text that names nothing."""
    if not isinstance(tree, dict):
        return []
    names = {key: re.sub(r"[_\s-]", "", key).casefold() for key in tree}
    return [_as_text(value) for key, value in tree.items() if names[key] in words().json_keys]


def _as_text(value: object) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(entry, str) for entry in value):
        return "\n".join(value)
    return "?"
