"""Exceptions: `no LGE save for a focus in the septum` says what stands behind, and nothing before it.

What is said of all but the exception is left out, and so is what is normal of the rest (`other walls
normal`).
"""

import re

from cardiolens.report_text.details import PLACES

_BUT = (
    r"(?:except(?:ing)?(?: for)?|with (?:the )?(?:sole |single |only )?exception of"
    r"|apart from|other than|save for|aside from)"
)
_ALL = (
    r"(?:(?:there (?:is|are) |shows? )?no (?:(?:regional|segmental|focal|definite|evidence of|areas? of) )*)"
)
_SEEN = r"(?:seen|present|noted|found|detected|visible|identified|elsewhere)"
_END = rf"(?: (?:is |are |was |were )?{_SEEN})?\s*,?\s*"
# A finding that is denied of the muscle: it stays the subject where the exception is a place alone.
_FINDING = (
    r"(?P<finding>(?:late (?:gadolinium )?enhancement|delayed enhancement|lge|scar(?:ring)?"
    r"|myocardial o?edema|o?edema|perfusion (?:defects?|abnormalit(?:y|ies))))"
)
_MOTION = r"(?:(?:wall )?motion (?:abnormalit(?:y|ies)|disturbances?)|rwmas?|wmas?)"
_PLACE = rf"(?:in|at|of|within|involving)\s+(?:the\s+)?(?:(?:[ ,&]|\b{PLACES}\b)+)(?=[.;\n]|$)"
_KIND = (
    r"(?:a|an|the|small|tiny|thin|focal|patchy|linear|single|subtle|mild"
    r"|sub-?endocardial|sub-?epicardial|mid-?wall|transmural)"
)
_SPOT = r"(?:foc(?:us|i)|areas?|scar|enhancement|lge|defect|o?edema|stripe|patch(?:es)?|band)"
_START = r"(?P<lead>^|[.;\n][ \t]*)"
_LEFT_OUT = re.compile(
    rf"{_START}(?P<general>{_ALL}{_FINDING}{_END}{_BUT}\s+)"
    rf"(?=(?P<place>{_PLACE})|(?:{_KIND}\s+)+{_SPOT}\b)",
    re.IGNORECASE,
)
_STILL = re.compile(
    rf"{_START}(?P<general>{_ALL}{_MOTION}{_END}{_BUT}\s+)"
    r"(?=(?:(?:a|the|mild|severe|focal|regional) )*(?:(?:hypo|a|dys)kines[ie][as]|(?:hypo|a|dys)kinetic)\b)",
    re.IGNORECASE,
)
_VALVES = re.compile(
    rf"{_START}(?P<general>{_ALL}(?:valve|valvular) (?:disease|abnormalit(?:y|ies)|lesions?){_END}{_BUT}\s+)"
    r"(?=(?:a |an )?(?:trivial|mild|moderate|severe) (?:mitral|tricuspid|aortic)"
    r" (?:regurgitation|insufficiency|stenosis)\b)",
    re.IGNORECASE,
)
_NORMAL_REST = re.compile(
    r"(?P<lead>[.;,]\s+(?:and |while |whereas )?|(?:and|while|whereas|but) )"
    r"(?P<rest>(?:all |the )*(?:other|remaining) (?:lv |left ventricular )?(?:segments?|walls?)"
    r"(?: (?:are|is|moves?|contracts?|works?|thicken))*"
    r" (?:normal(?:ly)?|fine|unremarkable|preserved|well|vigorously)"
    r"(?: (?:in motion|kinetic|contraction|thickness))?)"
    r"(?=\s*(?:[.;]|$))",
    re.IGNORECASE | re.MULTILINE,
)
_NAMES_ITSELF = re.compile(r"[^.;\n]*\b(?:scar|enhancement|lge|defect|o?edema|\w*kine\w+)\b", re.IGNORECASE)
_RIGHT = re.compile(r"\b(?:rv|right|papillary|insertion|artefacts?|artifacts?)\b", re.IGNORECASE)


def of_exceptions(text: str) -> str:
    """Blank out what is said of all but an exception; every letter that is left keeps its place."""
    for pattern in (_LEFT_OUT, _STILL, _VALVES):
        text = pattern.sub(_exception, text)
    return _NORMAL_REST.sub(lambda match: match["lead"] + " " * len(match["rest"]), text)


def _exception(match: re.Match[str]) -> str:
    """The finding, if the exception names none; a sentence on the right heart stays as it is."""
    text, end = match.string, match.end()
    stop = re.search(r"[.;\n]|$", text[end:])
    sentence_end = end + (stop.start() if stop else 0)
    if _RIGHT.search(text, match.start("general"), sentence_end):
        return match[0]
    general = match["general"]
    names_itself = _NAMES_ITSELF.match(text, end)
    if names_itself or "finding" not in match.groupdict():
        return match["lead"] + " " * len(general)
    start = match.start("finding") - match.start("general")
    finding = match["finding"]
    return match["lead"] + " " * start + f"{finding}:".ljust(len(general) - start)
