"""Layouts of reports: of what stands side by side, or behind an exception, only what holds is drafted."""

import pytest

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.roster import catalogue
from cardiolens.report_text.exceptions import of_exceptions
from cardiolens.report_text.filled_fields import of_filled_fields
from cardiolens.report_text.forms import of_forms
from cardiolens.report_text.number_lists import of_number_lists
from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.separators import of_separators
from cardiolens.report_text.side_by_side import of_columns_without_head
from cardiolens.report_text.spoken import of_dictation
from cardiolens.report_text.table_columns import of_columns

CATALOGUE = catalogue()
DRAFTS = {
    # columns
    "Parameter | Previous | Today\nLVEF | 33 % | 60 %\nLV size | severely dilated | normal": "C10=A C01=A",
    "Parameter\tToday\tPrior\nLVEF\t60 %\t33 %\nLV size\tnormal\tseverely dilated": "C10=A C01=A",
    "Measure        Today   Mar 2022   Jun 2020\nLVEF (%)       59      45         28": "C10=A",
    "Parameter | Value | Ref. range | Prior\nLVEF | 60 % | 55-77 | 33 %": "C10=A",
    "Parameter | 2022 | 2024\nLVEF | 60 % | 33 %": "",
    "Parameter | Today | Today after dobutamine\nLVEF | 45 % | 60 %": "",
    "Parameter | Prior | Z-score | Value\nLVEF | 33 % | 1 | 60 %": "",
    "Parameter | Previous | Today\n | Today | Previous\nLVEF | 60 % | 33 %": "",
    "Parameter | Today | Previous\n | rest | rest\nLVEF | 60 % | 33 %": "",
    "Parameter | Today | Prior\nLGE | basal septum, | none\n | mid septum | none": "",
    "Parameter | Today | Prior\nLV size | severely dilated": "",
    "Parameter | Today | Prior\nLGE | - | basal septum\nPericardial effusion | not done | small": "",
    "RV size: normal               RV size: normal\nRV func: mildly reduced       RV func: normal": "",
    "LV size: normal     LV size: severely dilated\nNo LGE              Septal scar": "",
    "LVEF\t2021: 58\t2024: 34\nRV size\tnormal": "C12=A",
    # filled-in fields
    "The left ventricle is [moderately dilated] with an EDV index of [124] mL/m2.": "C01=B",
    "LVEF = [33] %. Pericardial effusion is <absent>. The RV is {severely dilated}.": "C10=C C12=C C19=A",
    "The left ventricle is [normal/dilated].": "",
    "The left ventricle is [mildly/moderately] dilated.": "",
    "The left ventricle is [normal] [severely dilated].": "",
    "The left ventricle is [mild, moderate, severe] dilated.": "",
    "Late gadolinium enhancement is [select: absent].": "",
    "LVEF is 60 % [33].": "",
    "Late gadolinium enhancement is [absent]. [Delete if not given.]": "",
    # rows with remarks
    "Item | Result | Normal | Remark\nLVEDVi | 142 ml/m2 | 58-106 | severely dilated": "C01=C",
    "Item | Result | Normal | Remark\nLVEF | 60 % | 55-76 | severely reduced": "",
    "Item | Result | Normal | Remark\nPericardium | not done | - | small effusion": "",
    "Item | Result | Normal | Remark\nLGE | N | - | -": "",
    # details of forms
    "LGE: ( ) no (x) yes   walls: A ( ) S (x)   level: B (x) M ( ) A ( )": "L01=B L02=A L03=B",
    "LGE: (x) no ( ) yes   walls: A ( ) S (x)": "",
    "LGE: ( ) no (x) yes   walls: A ( ) S (x) spared": "",
    "LGE ( ) no (x) yes\n  layer ( ) subendo (x) mid\n  site      septum": "L01=B L03=B L05=B",
    # short forms with a full stop
    "Poss. LGE in the septal wall.": "",
    "No sig. LGE in the septal wall.": "",
    "V.a. LGE in the septal wall.": "",
    "Prev. LGE is seen in the septal wall.": "",
    "1. No LGE. 2. LVEF 60 %.": "C10=A L01=A",
    "Septum normal. No LGE.": "L01=A",
    # lines without full stops
    "Left atrium normal\nRight atrium normal\nNo LGE": "C16=A L01=A",
    "Left atrium dilated\nRight atrium normal": "C16=B",
    "Wall motion\nnormal": "C06=A",
    "Left atrium\nnormal": "",
    # separators
    "LV SIZE NORMAL / RV SIZE NORMAL /\nNO LGE / EFFUSION NONE": "C01=A C12=A L01=A C19=A",
    "LV volume: normal  LVEF: 44 % mildly reduced": "C01=A C10=B",
    "LVEF 33 % / moderately reduced.": "C10=C",
    "LVEF 60 % / prior normal": "",
    "LV normal size / LV dilated": "",
    "LGE none / LGE septal": "",
    "LV size normal / severely dilated / RV size normal": "",
    # boxes
    "LV size [x] normal [ ] severely dilated   RV size [ ] normal [x] severely dilated": "C01=A C12=C",
    "LV size [x] normal [x] dilated   RV size [x] normal [ ] dilated": "C12=A",
    "LV size [ ] normal [ ] dilated   RV size [ ] normal [ ] dilated": "",
    "Chamber dilated:   ( ) LV   (x) RV   ( ) LA   ( ) RA": "",
    # shorthand
    "T2 N\nEF 67": "T01=A C10=A",
    "LGE N": "",
    "LGE + : apical lateral": "L01=B L02=C L03=D",
    "LGE +/- : septal": "",
    "LV: mildly dilated (EDVI 112).": "C01=B",
    "Male. LV normal size (EDVi 150).": "",
    "EDVi 133/90": "",
    "LV EDV/ESV/EF 150/60/60.": "C10=A",
    "EDV/ESV/EF 150/60/35": "",
    # speech
    "ejection fraction fifty nine percent": "C10=A",
    "ejection fraction one hundred fifty percent": "",
    "ejection fraction fifty nine point five percent": "",
    # exceptions
    "There is no wall motion abnormality other than hypokinesia of the apical septum.": "C06=B C07=C C08=B",
    "No LGE except in the basal septum.": "L01=B L02=A L03=B",
    "No LGE apart from the septum.": "",
    "No LGE except possibly in the septum.": "",
    "No LGE except in the septum on the previous scan.": "",
    "No LGE except in the RV insertion points.": "",
    "No wall motion abnormality other than akinesia of the RV free wall.": "",
    "Basal inferior wall akinetic; other segments fine.": "C06=C C07=A C08=C",
    # silent sections
    "Indication: raised BNP\nThe left ventricle is severely dilated.": "C01=C",
    "History: copied from letter\nThe left ventricle is severely dilated.": "",
    "Cardiac MRI of a 29-year-old rower.\nNo late enhancement.": "L01=A",
    # words
    "Conclusion: Small distal LAD infarct.": "L01=B",
    "LAD aneurysm of 9 mm.": "",
    "Septum respecting the inferior wall: LGE.": "",
    "RVEF 56 %\nNo RWMA": "C15=A",
    "A thin line of mid-wall enhancement runs through the basal septum.": "L01=B L02=A L03=B L05=B",
}  # fmt: skip


def drafts(text: str) -> str:
    """What is drafted of a text, in the form of the files of `hospitals/`."""
    answers = settle(text, extract(text, None, CATALOGUE), CATALOGUE).answers
    return " ".join(f"{subtask}={''.join(keys)}" for subtask, keys in sorted(answers.items()))


@pytest.mark.parametrize("text", DRAFTS)
def test_a_layout_is_drafted_as_it_is_read(text: str) -> None:
    assert drafts(text) == " ".join(sorted(DRAFTS[text].split()))


@pytest.mark.parametrize("text", DRAFTS)
def test_every_layout_keeps_letters_in_their_places(text: str) -> None:
    layouts = (
        of_columns,
        of_separators,
        of_forms,
        of_exceptions,
        of_dictation,
        of_number_lists,
        of_filled_fields,
    )
    for read in (*layouts, of_columns_without_head, plain):
        assert len(read(text)) == len(text)
