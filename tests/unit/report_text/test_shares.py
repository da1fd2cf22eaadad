"""Shares that tell no place and no grade are left out; those that deny, compare or choose a layer stay."""

import pytest

from cardiolens.report_text.report_layout import plain
from cardiolens.report_text.shares import of_shares
from cardiolens.report_text.spoken import of_dictation

READ = {
    "LGE of the septum, 6 % of LV mass.": "LGE of the septum.",
    "LGE of the septum (about 6% of the LV mass).": "LGE of the septum.",
    "LGE = 9% of LV mass (5 SD).": "LGE.",
    "LGE 0 % of LV mass.": "LGE 0 % of LV mass.",
    "LGE < 6 % of LV mass.": "LGE < 6 % of LV mass.",
    "Fluid of 6 % of LV mass.": "Fluid of 6 % of LV mass.",
    "LGE, subendocardial <50%, basal.": "LGE, subendocardial, basal.",
    "LGE, subendocardial (< 50 % of wall thickness) in the apex": "LGE, subendocardial in the apex",
    "LGE, subendocardial, transmural, < 50 %": "LGE, subendocardial, transmural, < 50 %",
    "LGE, not subendocardial, < 50 %": "LGE, not subendocardial, < 50 %",
    "LGE, subendocardial > 50 %": "LGE, subendocardial > 50 %",
}
JOINED = {
    "hypo kinesia of the apex": "hypokinesia of the apex",
    "trans mural": "transmural",
    "sub epic cardial": "subepicardial",
    "trans kinetic": "trans kinetic",
    "a kinesia": "a kinesia",
    "sub mural": "sub mural",
    "sub kinesia": "sub kinesia",
}


@pytest.mark.parametrize("text", READ)
def test_a_share_that_tells_no_more_is_left_out(text: str) -> None:
    assert len(of_shares(text)) == len(text)
    assert " ".join(of_shares(text).split()).replace(" .", ".").replace(" ,", ",") == READ[text]


@pytest.mark.parametrize("text", JOINED)
def test_words_that_were_cut_in_two_are_joined(text: str) -> None:
    assert len(of_dictation(text)) == len(text)
    assert " ".join(of_dictation(text).split()) == JOINED[text]


@pytest.mark.parametrize(
    "text", ["LV is [[normal] in size].", "[[ [x] LV normal", "LV is [normal {or dilated}]."]
)
def test_a_layout_that_was_read_is_not_read_again(text: str) -> None:
    once = plain(text)
    assert plain(once) is once


def test_ticked_places_beside_another_option_are_left_out() -> None:
    assert plain("Level: [x] basal [x] mid [ ] apical").split() == ["Level:", "basal,", "mid"]
    assert not plain("Level: [x] basal [x] other [ ] apical").strip()
