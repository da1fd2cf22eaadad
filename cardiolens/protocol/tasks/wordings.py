"""Checks that alternative wordings keep the meaning of a question (protocol 16.10)."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

FRAME_PLACE = "\ufffc"

_NEGATIONS = re.compile(
    r"\b(?:no|not|non|none|nor|neither|never|without|absent|absence|free of|lacks?|exclud\w*|except)\b|n't\b"
)
_TERMS = (  # a wording and its question must contain the same terms
    *("left", "right", "ventric", "atri", "diastol", "systol", "long.axis", "short.axis", "wall", "level"),
    *("layer", "region", "structure", "segmental", "laminar", "mo(?:ve|tion)", "thick", "contour", "cavit"),
    *("valve", "outflow", "aortic", "pericard", "effusion", "myocard", "enhance", "perfus", "defect", "t2"),
    *("first.pass", "late", "signal", "distribut", "sever", "abnormal", r"\bnormal", "increas", "enlarg"),
    *("uniform", "fill", "function", "diagnos", "ischaem", "cardiomyopath", "likel", "study", "report"),
    *("cine", "mapping", "stress"),
)


def wording_problems(question: str, wordings: Sequence[str], options: Sequence[str]) -> list[str]:
    """Return why wordings cannot replace a question: changed terms, or an option given away."""
    problems = []
    if len({question, *wordings}) <= len(wordings):
        problems.append("wordings repeat the question or each other; write each in different words")
    return problems + [
        f"wording {number} {problem}"
        for number, wording in enumerate(wordings, start=1)
        for problem in _differences(question, wording, options)
    ]


def _differences(question: str, wording: str, options: Sequence[str]) -> Iterator[str]:
    before, now = question.lower(), wording.lower()
    if FRAME_PLACE in wording or not wording.strip():
        yield "is empty or holds U+FFFC, which is reserved for frames"
    if _negations(before) != _negations(now):
        yield "negates more or less often than the question"
    for term in _TERMS:
        if bool(re.search(term, before)) != bool(re.search(term, now)):
            yield f"and the question do not both say {term.strip(chr(92) + 'b')!r}"
    for text in options:
        if _says(now, text) and not _says(before, text):
            yield f"gives away the option {text!r}"


def _negations(text: str) -> int:
    return sum(Counter(_NEGATIONS.findall(text)).values())


def _says(text: str, option: str) -> bool:
    """Return whether a text contains an option, or the part of the option before its bracket."""
    heads = {option.lower(), option.lower().partition("(")[0]}
    return any(re.search(rf"(?<!\w){re.escape(head.strip())}(?!\w)", text) for head in heads if head.strip())
