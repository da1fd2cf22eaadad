"""Shorthand with one meaning: `LV/RV normal size`, `LV dilated?  No`, `EF: 65% [normal 57-77]`."""

import re

_PAIR = re.compile(r"\b(?P<first>LV|RV|LA|RA|size)/(?=(?P<second>LV|RV|LA|RA|fn|function)\b)", re.IGNORECASE)
_ANSWERED = re.compile(
    r"^(?P<question>[^?:\n]{2,60})\?(?=[ \t]+(?:yes|no)[ \t]*$)", re.IGNORECASE | re.MULTILINE
)
_EVIDENCE = re.compile(r"(?<=\bno )e/o\b", re.IGNORECASE)
_NORMAL_RANGE = re.compile(r"\[\s*(?:normal|ref(?:erence)?|nr|range)\b[^\]\n]*\]", re.IGNORECASE)


def of_shorthand(text: str) -> str:
    """Spell out a text's shorthand; every letter that is left keeps its place."""
    text = _PAIR.sub(_pair, text)
    text = _ANSWERED.sub(lambda match: f"{match['question']}:", text)
    for blank in (_EVIDENCE, _NORMAL_RANGE):
        text = blank.sub(lambda match: " " * len(match[0]), text)
    return text


def _pair(match: re.Match[str]) -> str:
    """Both of two structures, or of a size and a function; not a size and a structure."""
    is_size = match["first"].lower() == "size"
    is_function = match["second"].lower() in {"fn", "function"}
    return f"{match['first']}&" if is_size == is_function else match[0]
