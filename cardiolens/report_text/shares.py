"""Shares beside a finding that tell no place and no grade: `6 % of LV mass`, `subendocardial, < 50 %`."""

import re

_LEAD = (
    r"(?:[,(=]|\b(?:estimated at|amounting to|quantified (?:at|as)|an? extent (?:of )?|extent|involving"
    r"|about|some|circa|ca\.|approx\.|approximately|around|of)|[~≈])"
)
# Of a finding that is there: a share of naught denies it, and a comparison may be of another time.
_OF_MASS = re.compile(
    rf"(?:\s*{_LEAD})*\s*(?<![\d.,<>≤≥–-])(?<![<>≤≥] )[1-9]\d?(?:[.,]\d)?\s?%\s?of (?:the )?(?:total )?"
    r"(?:LV[- ]?|left ventricular |myocardial )?(?:mass|myocardium)\b(?:\s?\(\d ?SD\))?\)?",
    re.IGNORECASE,
)
_FINDING = re.compile(r"\b(?:LGE|LE|PSIR|enhancement|scar\w*|fibros[ie]s|accumulation)\b", re.IGNORECASE)
# Less than half of the wall is what a subendocardial layer is.
_OF_LAYER = re.compile(
    r"(?<!not )(?<!no )(?P<layer>\bsub-?endo\w*\b[^.;:\n|<>%]{0,70}?)"
    r"(?P<share>[,(]?\s*(?:<|less than|below|under) ?(?:25|50) ?%"
    r"(?: (?:transmural(?:ity)?|of (?:the )?wall(?: thickness)?))?\)?)(?=\s*(?:[,.;\]}|]|$|in\b|of\b))",
    re.IGNORECASE | re.MULTILINE,
)
_OTHER_LAYER = re.compile(r"transmural|mid-?wall|epi|non-?viable|spar", re.IGNORECASE)


def of_shares(text: str) -> str:
    """Blank out such shares; every letter that is left keeps its place."""
    text = _OF_LAYER.sub(_layer, text)
    return "".join(map(_line, text.splitlines(keepends=True)))


def _line(line: str) -> str:
    return _OF_MASS.sub(_blank, line) if _FINDING.search(line) else line


def _layer(match: re.Match[str]) -> str:
    if _OTHER_LAYER.search(match["layer"]):
        return match[0]
    return match["layer"] + " " * len(match["share"])


def _blank(match: re.Match[str]) -> str:
    """Blanks; brackets that open before a share and go on behind it stay."""
    if match[0].count("(") != match[0].count(")"):
        return match[0]
    return " " * len(match[0])
