"""Layouts and doubts of reports: of lines, forms, fields and tables only what is said is drafted."""

import pytest
from report_folders import content_of

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.roster import catalogue
from cardiolens.report_text.filled_fields import of_filled_fields
from cardiolens.report_text.forms import of_forms
from cardiolens.report_text.report_layout import of_own_marks, plain
from cardiolens.report_text.table_rows import of_rows

CATALOGUE = catalogue()
DRAFTS: dict[str, str] = content_of("layouts")


def drafts(text: str) -> str:
    """What is drafted of a text: `C10=A L01=B`."""
    answers = settle(text, extract(text, None, CATALOGUE), CATALOGUE).answers
    return " ".join(f"{subtask}={''.join(keys)}" for subtask, keys in sorted(answers.items()))


@pytest.mark.parametrize("text", DRAFTS)
def test_a_layout_is_drafted_as_it_is_read_and_keeps_letters_in_their_places(text: str) -> None:
    assert drafts(text) == DRAFTS[text]
    for read in (of_forms, of_filled_fields, of_own_marks, of_rows, plain):
        assert len(read(text)) == len(text)
