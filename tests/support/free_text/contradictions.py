"""Contradictions planted in some reports: a sentence that the rest of the report denies."""

from dataclasses import dataclass

from cardiolens.phantom.draws import Draws
from tests.support.free_text.sentence_builder import Sentence, Writer
from tests.support.free_text.templates import Style

_OPPOSITE = {  # contradicting grade of ejection fraction
    "normal": "severely_reduced",
    "mildly_reduced": "severely_reduced",
    "moderately_reduced": "normal",
    "severely_reduced": "normal",
}
_ELSEWHERE = {"anterior": "inferior", "septal": "lateral", "inferior": "anterior", "lateral": "septal"}
_WALL: dict[Style, str] = {
    "headed": "Late enhancement of the {0} wall only.",
    "narrative": "The late enhancement is confined to the {0} wall.",
    "terse": "LGE only {0} wall.",
}
_POSITIVE: dict[str, dict[Style, str]] = {
    "lge": {
        "headed": "Late enhancement of the lateral wall.",
        "narrative": "There is scar of the lateral wall.",
        "terse": "LGE+ lat wall.",
    },
    "t2": {
        "headed": "Oedema of the inferior wall.",
        "narrative": "There is oedema of the inferior wall.",
        "terse": "T2+ inf wall.",
    },
}


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A planted sentence, and the field of which it claims another value."""

    field: str
    sentence: Sentence


def contradiction(writer: Writer, measured: bool, draw: Draws) -> Contradiction:
    """Draw a contradiction that fits a report; `measured`: the report gives the ejection fraction."""
    choices = ["polarity"]
    if measured:
        choices.append("number_adjective")
    if len(writer.found["lge.regions"]) == 1 and writer.found["lge.regions"][0] in _ELSEWHERE:
        choices.append("wall")
    kind = draw.one_of(choices)
    if kind == "number_adjective":
        (grade,) = writer.found["cine.lv_systolic"]
        return _of("cine.lv_systolic", writer.stating("lv_systolic", _OPPOSITE[grade]))
    if kind == "wall":
        wall = _ELSEWHERE[writer.found["lge.regions"][0]]
        return _of("lge.regions", _WALL[writer.style].format(wall))
    name, field, absent = draw.one_of([("lge", "lge.enhancement", "absent"), ("t2", "t2.signal", "normal")])
    if not writer.is_normal(name):
        return _of(field, writer.stating(name, absent))
    return _of(field, _POSITIVE[name][writer.style])


def _of(field: str, text: str) -> Contradiction:
    return Contradiction(field, Sentence(text))
