"""Absent, an empty list and the normal value are one value."""

import json

import numpy as np
import pytest

from cardiolens.phantom.fixed_reports import reports
from cardiolens.phantom.parameters import canonical_values
from cardiolens.phantom.roster import SEQUENCES, catalogue, study
from cardiolens.protocol.tasks.truth import findings
from cardiolens.report_text.entities import ReportForm
from cardiolens.score.statistics.metrics import of_fields
from cardiolens.score.verdicts.case_verdict import Case, CaseReply
from cardiolens.score.verdicts.report_verdict import judge_fields

CINE = ReportForm.of(catalogue(), "R-CINE")
LGE = ReportForm.of(catalogue(), "R-LGE")
FORMS = {one.sequence: one.id for one in catalogue().subtasks.values() if one.answer_type == "report"}


def emptied(subtask, fields):
    """The fields of a report as the prompt asks for them: an empty list instead of a normal value."""
    form = ReportForm.of(catalogue(), subtask)
    normal = {
        field: {option.text for option in form.fields[field].options if option.normal} for field in fields
    }
    return {
        field: [] if value in ([], "") or set(np.atleast_1d(value)) <= normal[field] else value
        for field, value in fields.items()
    }


def scores(subtask, cases):
    counts = [
        judge_fields(
            Case(subtask, "report", (), (), (), json.dumps({"fields": reference}), "openprotocol-1"),
            CaseReply(json.dumps({"fields": reply}), refused=False, cut=False, displayed_keys=()),
        ).counts
        for reference, reply in cases
    ]
    sums = {name: np.array([float(sum(count[name] for count in counts))]) for name in counts[0]}
    return {name: float(value[0]) for name, value in of_fields(sums).items()}


PERFECT = {
    **dict.fromkeys(("entity_f1", "entity_precision", "entity_recall", "abnormal_f1", "field_match"), 1.0),
    **dict.fromkeys(("hallucination", "omission", "contradiction"), 0.0),
}


@pytest.mark.parametrize("sequence", FORMS)
@pytest.mark.parametrize("side", ["reply", "reference", "both"])
def test_a_perfect_report_with_empty_lists_has_every_score(sequence, side):
    subtask = FORMS[sequence]
    every = (
        reports(findings(study(2026, name).truth), "seed", catalogue(), SEQUENCES)
        for name in canonical_values()
    )
    written = [texts[sequence]["fields"] for texts in every if sequence in texts]
    cases = [
        (
            emptied(subtask, fields) if side != "reply" else fields,
            emptied(subtask, fields) if side != "reference" else fields,
        )
        for fields in written
    ]
    assert scores(subtask, cases) == PERFECT


@pytest.mark.parametrize(
    "absent", [[], "", None, "None", ["none"], [None], "absent", "None or physiological trace"]
)
def test_every_way_to_say_nothing_is_the_normal_value(absent):
    normal = ("pericardium", "None or physiological trace")
    assert normal in CINE.entities({"pericardium": absent})
    assert CINE.entities({"pericardium": absent}) == {("pericardium", "None or physiological trace")}


def test_a_field_without_a_normal_value_stays_empty():
    assert LGE.entities({"enhancement": "Present", "levels": [], "layers": "none"}) == {
        ("enhancement", "Present")
    }


@pytest.mark.parametrize("value", ["not assessable", "N/A", ["not assessable"]])
def test_what_cannot_be_judged_is_not_called_normal(value):
    assert LGE.entities({"enhancement": value}) == frozenset()


def test_a_reply_that_says_nothing_is_not_called_normal():
    assert CINE.entities({}) == frozenset()
