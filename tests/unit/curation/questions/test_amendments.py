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


KEPT = {  # what is drafted beside an addendum that says what stands
    "Addendum: LVEF is 50 %. All other findings stand.": ALL - {"C10"},
    "Addendum: LVEF is 50 %. Cardiac findings stand.": ALL - VENTRICLES,
    "Addendum: RV volumes were recontoured. No other change.": ALL - VENTRICLES - {"C16"},
    "Addendum: 9 mm nodule of the right thyroid lobe. Cardiac findings stand.": ALL | {"D01", "D02"},
    "Addendum: 9 mm nodule of the lung.": ALL | {"D01", "D02"},
    "Addendum: small pericardial effusion. Conclusion otherwise stands.": ALL - {"C19"} | {"D01", "D02"},
    "Addendum: small pericardial effusion. The rest is unchanged.": ALL - {"C19"},
    "Addendum: amyloidosis. Conclusion otherwise unchanged.": ALL,
    "Addendum: ECV 52 %. Conclusion otherwise unchanged.": ALL,
    "Addendum: The other one. Rest unchanged.": set(),
    "Addendum: LV and RV are exchanged. Rest unchanged.": set(),
    "Addendum: The report is not unchanged.": set(),
    "Addendum: Findings are therefore those of acute myocarditis.": ALL,
}


@pytest.mark.parametrize("note", KEPT)
def test_what_an_addendum_says_to_stand_is_drafted(note: str) -> None:
    text = REPORT.strip() + "\nConclusion: dilated cardiomyopathy.\n\n"
    assert set(drafted(text)) == ALL | {"D01", "D02"}
    assert set(drafted(text + note)) == KEPT[note]


@pytest.mark.parametrize(
    ("title", "kept"),
    [
        ("MRI HEART REPORT (FINAL + ADDENDUM)\n", ALL - {"L01"}),
        ("MRI heart report with addendum: LV\n", set()),
        ("REPORT\n", ALL - {"L01"}),
    ],
)
def test_a_title_that_names_an_addendum_amends_nothing(title: str, kept: set[str]) -> None:
    assert set(drafted(title + REPORT + "Addendum: scar of the septum.")) == kept
    assert set(drafted("MRI report with addendum\n" + REPORT)) == set()


@pytest.mark.parametrize(
    ("spoken", "kept"),
    [
        ("LV severely dilated, scratch that, LV normal size.", {"C16", "L01"}),
        ("Both LA severely dilated, scratch that, the ventricle.", {"L01"}),
        ("Scar. Scratch that. No scar of the septum.", {"C16"}),
        ("Correction: of the septum.", set()),
        ("Fine. Scratch that. Well.", set()),
    ],
)
def test_a_spoken_correction_takes_the_parts_beside_it(spoken: str, kept: set[str]) -> None:
    text = f"No LGE. Both atria of normal size. Examination was well tolerated. {spoken}"
    assert set(drafted(text)) & {"C16", "L01"} == kept
