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


@dataclass(frozen=True, slots=True)
class Contradiction:
    """A planted sentence; `says` holds the values that it claims for `field`."""

    kind: str  # number_adjective, polarity or wall
    field: str
    says: tuple[str, ...]
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
        says = _OPPOSITE[grade]
        return _of(kind, "cine.lv_systolic", says, writer.stating("lv_systolic", says))
    if kind == "wall":
        says = _ELSEWHERE[writer.found["lge.regions"][0]]
        return _of(kind, "lge.regions", says, _WALL[writer.style].format(says))
    name, field, absent, present = draw.one_of(
        [("lge", "lge.enhancement", "absent", "present"), ("t2", "t2.signal", "normal", "increased")]
    )
    says = absent if not writer.is_normal(name) else present
    if says == absent:
        return _of(kind, field, says, writer.stating(name, absent))
    positive = {
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
    return _of(kind, field, says, positive[name][writer.style])


def _of(kind: str, field: str, says: str, text: str) -> Contradiction:
    return Contradiction(kind, field, (says,), Sentence(text, "impression", "contradiction"))
