"""Contradictions planted in some reports: a sentence that the rest of the report denies."""

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


def contradiction(writer: Writer, measured: bool, draw: Draws) -> tuple[str, Sentence]:
    """Draw a contradiction that fits a report: its field and sentence.

    `measured`: the report gives the ejection fraction.
    """
    choices = ["polarity"]
    if measured:
        choices.append("number_adjective")
    if len(writer.found["lge.regions"]) == 1 and writer.found["lge.regions"][0] in _ELSEWHERE:
        choices.append("wall")
    kind = draw.one_of(choices)
    if kind == "number_adjective":
        (grade,) = writer.found["cine.lv_systolic"]
        return "cine.lv_systolic", Sentence(writer.stating("lv_systolic", _OPPOSITE[grade]))
    if kind == "wall":
        wall = _ELSEWHERE[writer.found["lge.regions"][0]]
        return "lge.regions", Sentence(_WALL[writer.style].format(wall))
    name, field, absent = draw.one_of([("lge", "lge.enhancement", "absent"), ("t2", "t2.signal", "normal")])
    if not writer.is_normal(name):
        return field, Sentence(writer.stating(name, absent))
    return field, Sentence(_POSITIVE[name][writer.style])
