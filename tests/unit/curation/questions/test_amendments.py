"""Addenda and spoken corrections: the sequences that they name are not drafted, or nothing."""

import pytest

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.roster import catalogue

CATALOGUE = catalogue()
REPORT = "LV normal size, EF 60 %. No LGE. No oedema. No pericardial effusion.\n\n"
CINE = {"C01", "C10", "C19"}
ALL = {*CINE, "L01", "T01"}
NOTES = {  # what each leaves
    "Addendum: LVEF is 50 %, mildly reduced.": ALL - CINE,
    "Addendum: The right atrium is enlarged.": ALL - CINE,
    "Erratum: Scar of the lateral wall.": ALL - {"L01"},
    "Addendum: On another look.\nThere is no oedema.": ALL - {"T01"},
    "Addendum\n\nLV mildly dilated.": ALL - CINE,
    "Addendum: Wrong wall.": set(),
    "Addendum: The report belongs to another patient.": set(),
    "Addendum: The first sentence should read severely dilated.": ALL - CINE,
    "Addendum: discussed with Dr X. No change to the report.": ALL,
    "Addendum: discussed with Dr X, but the LV is dilated.": ALL - CINE,
    "Scar, scratch that, no scar of the septum.": ALL - {"L01"},
    "Correction: of the septum.": set(),
}


def drafted(text: str) -> set[str]:
    return set(settle(text, extract(text, None, CATALOGUE), CATALOGUE).answers)


@pytest.mark.parametrize("note", NOTES)
def test_an_addendum_takes_the_sequences_that_it_names_or_all(note: str) -> None:
    assert drafted(REPORT) == ALL
    assert drafted(REPORT + note) == NOTES[note]
