"""Terse pairs of notes are spelled out where they have one meaning, and stay as they are elsewhere."""

import pytest

from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.sections import sentences
from cardiolens.report_text.terse_pairs import of_terse_pairs

PAIRS = {
    "RV N/N": "RV ꜱ  ",
    "RV nl/nl.": "RV ꜱ    .",
    "RV N/nl": "RV N/nl",
    "RV N/N?": "RV N/N?",
    "MR N/N": "MR N/N",
    "LGE lateral, mid/basal": "LGE lateral, mid&basal",
    "LGE septum, basal/mid/apical": "LGE septum, basal/mid/apical",
    "level: basal/mid": "level: basal/mid",
    "mid/inferior": "mid/inferior",
    "LV sev dil 155/m2": "LV sev dil       ",
    "LV sev dil 155/m2 before": "LV sev dil 155/m2 before",
    "LV 74/m2 N": "LV size  N",
    "MV/TV: no regurgitation": "MV&TV: no regurgitation",
    "MV/TV: mild regurgitation, no stenosis": "MV/TV: mild regurgitation, no stenosis",
}


@pytest.mark.parametrize("text", PAIRS)
def test_a_pair_is_spelled_out_where_it_has_one_meaning(text: str) -> None:
    assert of_terse_pairs(text) == PAIRS[text]
    assert plain(plain(text)) == plain(text)


@pytest.mark.parametrize(
    ("text", "silent"),
    [
        ('>> carried over from CMR 18.06.2022: "LVEF 29 %. No LGE."\nLVEF 60 %.', [True, True, False]),
        ('>> carried over from CMR 18.06.2022: "LVEF 29 %.\nNo LGE."\nLVEF 60 %.', [True, True, True]),
        ("From report of 10/05/2021: LVEF 29 %.\nLVEF 60 %.", [True, False]),
        ("From report of 10/05/2021:\nLVEF 29 %.", [True, True]),
        (">> LVEF 29 %.\nLVEF 60 %.", [False, False]),
    ],
)
def test_a_line_copied_from_a_dated_report_is_silent(text: str, silent: list[bool]) -> None:
    assert [sentence.section == "silent" for sentence in sentences(text)][-len(silent) :] == silent
