"""Codes that a case's verdict and request hold have words in the viewer."""

import re
from typing import get_args

import pytest

from cardiolens.inference.plan.frame_views import BLANK
from cardiolens.inference.plan.planner import ESTIMATED
from cardiolens.protocol.replies.strict_reading import Rule
from cardiolens.score.verdicts.case_verdict import ParseStatus
from cardiolens.show.page.page_rendering import asset

RULES = {*get_args(Rule), "whole_reply"}


def keys_of(name: str) -> set[str]:
    """The codes that a table of `words.js` has."""
    table = re.search(rf"const {name} = {{(.*?)^}};", asset("words.js"), re.M | re.S)
    assert table
    return set(re.findall(r"^  (\w+):", table[1], re.M))


@pytest.mark.parametrize(
    ("table", "codes"),
    [
        ("RULE_WORDS", RULES),
        ("ENDING_WORDS", set(get_args(ParseStatus))),
        ("FLAG_WORDS", {BLANK, ESTIMATED, "short", "degraded", "no_temporal_evidence"}),
    ],
)
def test_each_code_has_words(table: str, codes: set[str]) -> None:
    assert codes <= keys_of(table)
