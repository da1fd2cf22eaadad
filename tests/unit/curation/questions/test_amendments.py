"""Addenda: what they may have changed is not drafted, and what they do not name is."""

import pytest

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.roster import catalogue

CATALOGUE = catalogue()
REPORT = (
    "LV normal size, EF 60 %. RV normal size. Both atria of normal size. No LGE. No oedema. "
    "No pericardial effusion.\n\n"
)
ALL = {"C01", "C10", "C12", "C16", "C19", "L01", "T01"}
VENTRICLES = {"C01", "C10", "C12"}
NOTES = {  # what each leaves
    "Addendum: LVEF is 50 %, mildly reduced.": ALL - VENTRICLES,
    "Addendum: The right atrium is enlarged.": ALL - {"C16"},
    "Correction: Small pericardial effusion.": ALL - {"C19"},
    "Erratum: Scar of the lateral wall.": ALL - {"L01"},
    "Addendum: Volumes were recontoured.": ALL - VENTRICLES - {"C16"},
    "Addendum: Dilatation is severe.": ALL - VENTRICLES - {"C16"},
    "Addendum: There is a bright area of the lateral wall.": {"C19"},
    "Addendum: LV mass 142 g.": ALL,
    "Addendum: High signal is seen.": ALL - {"L01", "T01"},
    "Addendum: The contours were corrected.": ALL - VENTRICLES - {"C16"},
    "Addendum: The statement on the right atrium is withdrawn.": ALL - {"C16"},
    "Addendum: Lateral, not septal. No pericardial effusion.": set(),
    "Addendum: Nodule of the right lung, 12 mm.": ALL,
    "Addendum: Coronary arteries unobstructed at angiography.": ALL,
    "Addendum: Biopsy shows amyloid.": ALL,
    "Addendum: DCM.": ALL,
    "Addendum: On another look.\nThere is no oedema.": ALL - {"T01"},
    "Addendum\n\nLV mildly dilated.": ALL - VENTRICLES,
    "Addendum: Wrong wall.": set(),
    "Addendum: Side error in the sizes of the atria.": set(),
    "Addendum: LV and RV are exchanged.": set(),
    "Addendum: The report belongs to another patient.": set(),
    "Addendum: Lateral, not septal.": set(),
    "Addendum: The second reader sees a lesion of the LV.": set(),
    "Addendum: The right one of the ventricles is dilated.": set(),
    "Addendum: The first sentence should read severely dilated.": set(),
    "Addendum: On another look.": set(),
}


def drafted(text: str) -> dict[str, tuple[str, ...]]:
    return settle(text, extract(text, None, CATALOGUE), CATALOGUE).answers


@pytest.mark.parametrize("note", NOTES)
def test_an_addendum_takes_the_parts_that_it_names_or_all(note: str) -> None:
    assert set(drafted(REPORT)) == ALL
    assert set(drafted(REPORT + note)) == NOTES[note]


def test_a_spoken_correction_takes_all_that_is_of_its_sequence() -> None:
    assert "C16" not in drafted(
        "Both atria of normal size. LV severely dilated, scratch that, LV normal size."
    )
