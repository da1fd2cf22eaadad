"""Codes that a case's verdict and request hold have words in the viewer."""

import re
from pathlib import Path
from typing import get_args

import pytest

import cardiolens.score.verdicts
from cardiolens.inference.plan.control import BLANK
from cardiolens.inference.plan.planner import ESTIMATED
from cardiolens.score.verdicts.answer_marks import Rule
from cardiolens.score.verdicts.parse import ParseStatus
from cardiolens.show.page.page_rendering import asset

SOURCES = "".join(path.read_text() for path in Path(cardiolens.score.verdicts.__path__[0]).glob("*.py"))
RULES = {
    *get_args(Rule),
    *re.findall(r'(?:_with_rule|= |return )\(?"([a-z_]+)", (?:of_headings|blocks\.|_|list_and)', SOURCES),
    *re.findall(r'_with_rule\(\s*"([a-z_]+)"', SOURCES),
    *re.findall(r'"(heading|last_line|whole_reply|none)"', SOURCES),
}


def keys_of(name: str) -> set[str]:
    """The codes that a table of `words.js` has."""
    table = re.search(rf"const {name} = {{(.*?)^}};", asset("words.js"), re.M | re.S)
    assert table
    return set(re.findall(r"^  (\w+):", table[1], re.M))


def test_the_rules_were_found() -> None:
    assert {"answer_line", "heading", "letters", "option_text", "enumeration", "last_line"} <= RULES


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
