"""Rates of wrong drafts on reports of hospitals that the rules were repaired on, and one pass over hard ones.

The rate on reports of strange hospitals is measured by `bench/hospitals.py` on blind sets.
"""

import time

import pytest
from hospital_reports import FOLDER, read_labelled

from cardiolens.curation.questions.extraction_truth import settle
from cardiolens.curation.questions.numbers import sex_of
from cardiolens.curation.questions.rule_extraction import extract
from cardiolens.phantom.roster import catalogue

CATALOGUE = catalogue()
MOST_WRONG, LEAST_RECALL = 0.04, 0.42


def drafts(text: str) -> dict[str, str]:
    answers = settle(text, extract(text, sex_of(text, None), CATALOGUE), CATALOGUE).answers
    return {subtask: "".join(keys) for subtask, keys in answers.items()}


@pytest.mark.parametrize("name", ["ninth_closed", "tenth", "tenth_closed"])
def test_few_drafts_are_wrong_and_many_are_made(name: str) -> None:
    reports = read_labelled(FOLDER / f"{name}_reports.txt")
    counts = [report.truth.counts(drafts(report.text)) for report in reports]
    n_drafts, n_wrong, n_told, n_hits = (
        sum(counted[key] for counted in counts) for key in ("drafts", "wrong", "told", "hits")
    )
    assert n_wrong <= MOST_WRONG * n_drafts
    assert n_hits >= LEAST_RECALL * n_told


def test_a_long_report_of_one_line_is_read_quickly() -> None:
    started = time.monotonic()
    drafts("No LGE, " * 1000)
    assert time.monotonic() - started < 20
