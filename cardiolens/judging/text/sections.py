"""Sections and sentences of a report (protocol 9, stage 1)."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cardiolens.judging.text.grammar import grammar
from cardiolens.tasks.phrases import Phrase

_BREAK = re.compile(r"(?<!\bvs)(?<!\bapprox)(?<!\bmax)(?<!\bmin)[.!](?=\s|$)|\?(?=\s*$|\s+[A-Z\n])|\n+")
_HEADING = re.compile(r"[\s\-*•#\d.)]*([^\W_][^:\n.;,]{0,45}?)\s*(:|\n|\s[-–—]\s)")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A stretch of text within a section; `topic` is the heading that it stands under."""

    start: int
    end: int
    section: str  # a sequence, "silent", or "any" where no heading names one
    topic: tuple[int, int] | None  # of a heading in an earlier line
    asks: bool  # whether it ends with a question mark


def sentences(text: str) -> Iterator[Sentence]:
    """The sentences of a report in order."""
    section, topic = "any", None
    for start, end in _pieces(text):
        heading = _HEADING.match(text, start, min(end + 1, len(text)))
        words = _phrase(heading[1]) if heading else ()
        named = _section(words) if heading else None
        if named:
            section, topic = named, None
        yield Sentence(start, end, section, topic, text[end : end + 1] == "?")
        if heading and not text[heading.end() : end].strip():
            topic = heading.span(1)
        elif heading and heading[2] == ":":
            topic = None


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for match in _BREAK.finditer(text):
        # a heading alone in its line takes the line break along, so that it is known as one
        if text[start : match.start()].strip():
            yield start, match.start()
        start = match.end()
    if text[start:].strip():
        yield start, len(text)


def _phrase(written: str) -> Phrase:
    return tuple(_WORD.findall(written.lower()))


def _section(words: Phrase) -> str | None:
    return grammar().headings.get(words)
