"""The case discussion of MedThinkVQA: a teaching text in six sections (protocol 16.17)."""

import re

SECTIONS = (
    "Background",
    "Clinical Perspective",
    "Imaging Perspective",
    "Clinical Significance",
    "Outcome",
    "Take Home Message / Teaching Points",
)
VALUES = (  # what a discussion is worth to learners
    "disease_definition",
    "clinical_manifestation",
    "imaging_findings",
    "diagnostic_reasoning",
    "transferable_learning",
)
MOST_VALUE = 2  # of each of these, from 0

_LAST = r"take[- ]home messages?(?: ?(?:/|and|&) ?teaching points?)?|teaching points?"
_NAMES = "|".join([*(name.lower().replace(" ", "[ ]") for name in SECTIONS[:-1]), _LAST])
_MARKS = r"[ \t>*#_-]*"
_HEADING = re.compile(
    rf"^{_MARKS}(?:\d+[.)])?{_MARKS}({_NAMES})[ \t*_]*(?::[ \t*_]*|$)", re.IGNORECASE | re.MULTILINE
)
_SENTENCE = re.compile(r"(?<=[.!?])[ \t]+(?=[A-Z0-9(\"'])")
_BULLET = re.compile(r"^[ \t]*(?:[-*\u2022][ \t]+|\d+[.)][ \t]+)")


def sections_of(text: str) -> dict[str, str] | None:
    """Split a discussion at the headings of its sections; None if these are not all there once, in order.

    A heading stands at the beginning of a line and ends with a colon or the line. What comes before the first
    one is dropped.
    """
    headings = list(_HEADING.finditer(text))
    if [_section(heading[1]) for heading in headings] != list(SECTIONS):
        return None
    ends = [*(heading.start() for heading in headings[1:]), len(text)]
    texts = [text[heading.end() : end].strip() for heading, end in zip(headings, ends, strict=True)]
    return dict(zip(SECTIONS, texts, strict=True)) if all(texts) else None


def sentences_of(text: str) -> list[str]:
    """Split a section into sentences, on one line each; an item of a list begins one."""
    lines = (_BULLET.sub("", line).strip() for line in text.splitlines())
    return [" ".join(part.split()) for line in lines for part in _SENTENCE.split(line) if part.strip()]


def _section(heading: str) -> str:
    name = heading.lower()
    return next((known for known in SECTIONS if known.lower() == name), SECTIONS[-1])
