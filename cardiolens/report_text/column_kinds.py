"""Names of columns: what a head says that the cells of its column are."""

import re

_THING = r"(?:exam(?:ination)?|study|scan|mri|cmr|values?|results?|findings?|report|visit)"
_SCAN = r"(?:exam(?:ination)?|study|scan|mri|cmr)"
_YEAR = r"(?:19|20)\d\d"
_EARLIER = (
    rf"(?:prior|previous(?:ly)?|last|old|before|baseline|initial|earlier|past)"
    rf"(?: (?:{_THING}|echo|tte|ct|time))?",
    rf"(?:prior|previous|last)? ?(?:[a-z]{{3,9}}\.? )?{_YEAR}",
    r"\d{1,2}[./-]\d{1,2}[./-]\d{2,4}|\d{1,2}/\d{2,4}",
    r"(?:\w+ )?(?:days?|weeks?|months?|years?) ago|last (?:week|month|year)",
    r"pre-?op\w*|\w+ before|before \w+",
    rf"{_SCAN} (?:of )?{_YEAR}",
)
# A name of two kinds, or of none, leaves the whole table open.
_KINDS = {
    "today": rf"(?:today|now|current(?:ly)?|this time|today'?s)(?: {_THING})?"
    rf"|(?:this|present|actual|new) {_THING}|{_THING} (?:today|now)",
    "earlier": "|".join(_EARLIER),
    "value": r"values?|results?|findings?|measure(?:d|ment)?",
    "unit": r"units?",
    "normal": r"(?:ref(?:erence)?\.?|normal|norm)(?: ?(?:range|values?|limits?))?\.?|range|n",
    "flag": r"flags?",
    "change": r"(?:change|delta|difference|trend|Δ)(?: ?%)?",
    "remark": r"comments?|remarks?|notes?|assessment|interpretation",
}
_OF_KIND = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}
_BRACKET = re.compile(r"\s*\([^()]*\)\s*$")
_NAME = re.compile(
    r"(?:parameter|structure|item|feature|quantity|measure|measurement|variable|test|sequence|chamber|finding)s?|",
    re.IGNORECASE,
)


def kind_of(name: str) -> str:
    """The one kind of a column that its name states; "?" where it states none, or two."""
    text = name if _OF_KIND["earlier"].fullmatch(name) else _BRACKET.sub("", name)
    kinds = [kind for kind, pattern in _OF_KIND.items() if pattern.fullmatch(text)]
    return kinds[0] if len(kinds) == 1 else "?"


def names_rows(name: str) -> bool:
    """Return whether the name of a first column says that rows are named there, or it has no name."""
    return _NAME.fullmatch(name) is not None
