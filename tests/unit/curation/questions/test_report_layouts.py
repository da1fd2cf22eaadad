"""Layouts and doubts of reports: of lines, forms, fields and tables only what is said is drafted."""

import pytest

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.roster import catalogue
from cardiolens.report_text.filled_fields import of_filled_fields
from cardiolens.report_text.forms import of_forms
from cardiolens.report_text.report_layout import of_own_marks, plain
from cardiolens.report_text.table_rows import of_rows

CATALOGUE = catalogue()
DRAFTS = {
    "Parameter | 2022 | 2024\nLVEF | 60 % | 33 %": "",
    "Parameter | Prior | Z-score | Value\nLVEF | 33 % | 1 | 60 %": "",
    "Parameter | Previous | Today\n | Today | Previous\nLVEF | 60 % | 33 %": "",
    "Parameter | Today | Previous\n | rest | rest\nLVEF | 60 % | 33 %": "",
    "Parameter | Today | Prior\nLGE | basal septum, | none\n | mid septum | none": "",
    "Parameter | Today | Prior\nLGE | - | basal septum\nPericardial effusion | not done | small": "",
    "LV size: normal     LV size: severely dilated\nNo LGE              Septal scar": "",
    "LVEF\t2021: 58\t2024: 34\nRV size\tnormal": "C12=A",
    "The left ventricle is [moderately dilated] with an EDV index of [124] mL/m2.": "C01=B",
    "LVEF = [33] %. Pericardial effusion is <absent>. The RV is {severely dilated}.": "C10=C C12=C C19=A",
    "The left ventricle is [normal/dilated].": "",
    "The left ventricle is [normal] [severely dilated].": "",
    "Late gadolinium enhancement is [select: absent].": "",
    "Late gadolinium enhancement is [absent]. [Delete if not given.]": "",
    "Item | Result | Normal | Remark\nLVEDVi | 142 ml/m2 | 58-106 | severely dilated": "C01=C",
    "Item | Result | Normal | Remark\nLVEF | 60 % | 55-76 | severely reduced": "",
    "LGE: ( ) no (x) yes   walls: A ( ) S (x)   level: B (x) M ( ) A ( )": "L01=B L02=A L03=B",
    "LGE: (x) no ( ) yes   walls: A ( ) S (x)": "",
    "LGE: ( ) no (x) yes   walls: A ( ) S (x) spared": "",
    "Poss. LGE in the septal wall.": "",
    "Prev. LGE is seen in the septal wall.": "",
    "1. No LGE. 2. LVEF 60 %.": "C10=A L01=A",
    "Septum normal. No LGE.": "L01=A",
    "Left atrium normal\nRight atrium normal\nNo LGE": "C16=A L01=A",
    "Left atrium\nnormal": "",
    "LV SIZE NORMAL / RV SIZE NORMAL /\nNO LGE / EFFUSION NONE": "C01=A C12=A C19=A L01=A",
    "LV normal size / LV dilated": "",
    "LV size normal / severely dilated / RV size normal": "",
    "LV size [x] normal [ ] severely dilated   RV size [ ] normal [x] severely dilated": "C01=A C12=C",
    "LV size [x] normal [x] dilated   RV size [x] normal [ ] dilated": "C12=A",
    "Chamber dilated:   ( ) LV   (x) RV   ( ) LA   ( ) RA": "",
    "T2 N\nEF 67": "C10=A T01=A",
    "LGE + : apical lateral": "L01=B L02=C L03=D",
    "LGE +/- : septal": "",
    "LV: mildly dilated (EDVI 112).": "C01=B",
    "Male. LV normal size (EDVi 150).": "",
    "EDV/ESV/EF 150/60/35": "",
    "ejection fraction one hundred fifty percent": "",
    "There is no wall motion abnormality other than hypokinesia of the apical septum.": "C06=B C07=C C08=B",
    "No LGE except in the basal septum.": "L01=B L02=A L03=B",
    "No LGE except possibly in the septum.": "",
    "Basal inferior wall akinetic; other segments fine.": "C06=C C07=A C08=C",
    "Indication: raised BNP\nThe left ventricle is severely dilated.": "C01=C",
    "History: copied from letter\nThe left ventricle is severely dilated.": "",
    "Conclusion: Small distal LAD infarct.": "L01=B",
    "A thin line of mid-wall enhancement runs through the basal septum.": "L01=B L02=A L03=B L05=B",
    "LGE not assessed": "",
    "LGE pending": "",
    "LGE: see separate report": "",
    "Scar: 0 %": "",
    "LGE: [ ] absent [x] present": "L01=B",
    "LGE: [x] absent [x] present": "",
    "LVEDVi 150 (reference: normal 50-95)": "",
    "LV EF (%)\t36\t(normal 57-77)": "C10=C",
    "LV EF (%) 36 (normal 57-77)": "",
    "scar of the septum; lateral wall is normal": "L01=B",
    "If LGE is present an ICD should be considered": "",
    "Mother has DCM with LVEF 20 %": "",
    "bright signal in anterior wall from coil proximity": "",
    "LVEF 24 %, severely reduced": "C10=D",
    "LV/RV normal size": "C01=A C12=A",
    "LV dilated?  No": "C01=A",
    "LGE: none.\nNo pericardial effusion.": "C19=A L01=A",
    "LGE: none.\nThe septum shows scar on the previous study.": "L01=A",
    "LGE: possible\n Wall: septal": "",
    "LGE\n basal inferior wall, subendocardial": "L01=B L02=A L03=C L05=A",
    "LV\n size: normal\nRV\n size: severely dilated\n function: normal": "C01=A C12=C C15=A",
    "RIGHT VENTRICLE: dilated. EF 35%.": "",
    "EF 35 (2019: 60).": "C10=C",
    "LV size (normal/mild/severe): normal": "C01=A",
    "PREVIOUS REPORT (14/02/2023):\nLV severely dilated.\nCURRENT REPORT:\nLV normal size.": "C01=A",
    "Result pulled (2024, Dr A):\n| LV dilated.\n| RV EF 30 %.\nNow\nRV normal size.": "C12=A",
    "LA: [mildly enlarged]  RA: [normal]": "C16=B",
    "LV cavity: [normal]  LVEF: [38 %]\nMV: [mild MR]  TV: [no TR]": "C01=A C10=C C17=B",
    "Sheet (tick = V)\nLGE:  V no  - yes\nLV size:  - normal  V severely enlarged": "C01=C L01=A",
    "> LV severely dilated.\n> RV EF 30 %.\nRV normal size.\nLV normal size.": "C01=A C12=A",
    "No late enhancement. In a brindle, scar of the septum.": "",
    "LGE: Negative for subendocardial, mid-wall and transmural enhancement.": "",
    "LVEF 60 %. EF by brindle 45 %.": "",
    "LV normal size. No LGE. RV normal size.\nReferral:\nDCM.": "C01=A C12=A L01=A",
    "LV size ........ normal": "C01=A",
    "LV size;normal\nRV size;severely dilated": "C01=A C12=C",
    "LVOT / aortic valve: no jet, no SAM, no regurgitation": "C18=A",
    "LVEF 60 % (prior 2020: 33 %, moderately reduced).": "C10=A",
    "LGE: [x] present -> mid septum": "L01=B L02=B L03=B",
    "Question: myocarditis?\nLV normal size.\nRV normal size.\nT2: no oedema.": "C01=A C12=A T01=A",
    "History: MRI elsewhere.\nLV was severely dilated.\nT2: no oedema.": "T01=A",
    "[LV] Severely dilated\n[RV] Normal size": "C01=C C12=A",
    "LV: [x] mildly/moderately enlarged [ ] normal": "C01=B",
    "SAM/LVOTO   ( ) yes (x) no\nAR   ( ) yes (x) no": "C18=A",
    "LGE: [x] present [ ] absent\n  Level: [x] basal [x] other [ ] apical": "L01=B",
    "Atria enlarged   ( ) none   (x) left   ( ) right": "",
    "LV size: severely dilated\nNote: LV and RV values above are exchanged.": "",
    "RV LGE: free wall enhancement.\nLV LGE: subepicardial, lateral wall.": "L01=B",
    "RV normal size\nNo RWMA": "C06=A C12=A",
}  # fmt: skip


def drafts(text: str) -> str:
    """What is drafted of a text: `C10=A L01=B`."""
    answers = settle(text, extract(text, None, CATALOGUE), CATALOGUE).answers
    return " ".join(f"{subtask}={''.join(keys)}" for subtask, keys in sorted(answers.items()))


@pytest.mark.parametrize("text", DRAFTS)
def test_a_layout_is_drafted_as_it_is_read(text: str) -> None:
    assert drafts(text) == DRAFTS[text]


@pytest.mark.parametrize("text", DRAFTS)
def test_every_layout_keeps_letters_in_their_places(text: str) -> None:
    for read in (of_forms, of_filled_fields, of_own_marks, of_rows, plain):
        assert len(read(text)) == len(text)
