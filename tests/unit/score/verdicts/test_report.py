"""Reports: entities, text overlap, and the ways a report can be missing (protocol 3)."""

import json
from typing import Any

import pytest

from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.report_text.entities import ReportForm, entity_counts
from cardiolens.score.verdicts.case_verdict import Case, CaseReply, Judgement
from cardiolens.score.verdicts.report_verdict import judge_fields, judge_text
from cardiolens.score.verdicts.text_metrics import overlap_counts

GOLD: dict[str, Any] = {
    "fields": {
        "enhancement": "Present",
        "levels": ["Basal segment", "Mid segment"],
        "regions": ["Lateral wall"],
        "distribution": [],
        "layers": ["Subepicardial"],
    },
    "findings": "There is subepicardial late enhancement in the basal and mid lateral wall.",
    "impression": "Inflammatory pattern.",
}
FOUND = {
    "enhancement": "Present",
    "levels": ["Mid segment"],
    "regions": ["Septal wall"],
    "layers": ["Subepicardial"],
}
CASE = Case("R-LGE", "report", (), (), (), json.dumps(GOLD), "openprotocol-1")
FORM = ReportForm.of(load_catalogue("openprotocol-1"), "R-LGE")


def reply(text: str, *, refused: bool = False, cut: bool = False) -> CaseReply:
    return CaseReply(text, refused, cut, ())


def fields_of(text: str, **changes: bool) -> Judgement:
    return judge_fields(CASE, reply(text, **changes))


def test_the_worked_example_of_entities() -> None:
    counts = entity_counts(FORM, FORM.entities(GOLD["fields"]), FORM.entities(FOUND))
    assert (counts["tp"], counts["fp"], counts["fn"]) == (3, 1, 2)


def test_the_worked_example_of_rouge() -> None:
    reference = "there is subepicardial late enhancement in the basal and mid lateral wall"
    hypothesis = "mid wall late enhancement in the mid lateral wall"
    counts = overlap_counts(reference, hypothesis)
    assert (counts["lcs"], counts["reference_words"], counts["words"]) == (7, 12, 9)


def test_grams_are_clipped_to_the_reference() -> None:
    counts = overlap_counts("a b c", "a a b")
    assert [counts[f"match_{n}"] for n in (1, 2, 3, 4)] == [2, 1, 0, 0]
    assert [counts[f"gram_{n}"] for n in (1, 2, 3, 4)] == [3, 2, 1, 0]


def test_half_a_surrogate_pair_in_a_value_does_no_harm() -> None:
    assert fields_of('{"enhancement": "\\ud800"}').parsed == ("enhancement: ?",)


def test_the_reference_itself_is_right_in_both_channels() -> None:
    fields, text = (judge(CASE, reply(json.dumps(GOLD))) for judge in (judge_fields, judge_text))
    assert fields.correct
    assert text.correct
    assert fields.counts["fields_equal"] == fields.counts["fields"] == 5
    assert text.counts["lcs"] == text.counts["words"] == text.counts["reference_words"]


@pytest.mark.parametrize("wrap", ["{}", "Here it is:\n```json\n{}\n```", "<think>{{}}</think>{}"])
def test_fields_are_found_wherever_the_json_stands(wrap: str) -> None:
    judged = fields_of(wrap.format(json.dumps(GOLD)))
    assert (judged.parse_status, judged.correct) == ("ok", True)


def test_fields_may_stand_at_the_top_and_in_any_case() -> None:
    values = {"enhancement": "present", "levels": ["BASAL  segment", "mid segment."]}
    values |= {"regions": "Lateral wall", "layers": ["Subepicardial"]}
    assert fields_of(json.dumps(values)).correct


def test_values_outside_the_options_are_wrong_and_unassessable_ones_silent() -> None:
    judged = fields_of(json.dumps({"enhancement": "Perhaps", "levels": "not assessable", "layers": []}))
    assert judged.parsed == ("enhancement: Perhaps",)
    assert (judged.counts["tp"], judged.counts["fp"], judged.counts["fn"]) == (0, 1, 5)


def test_abnormal_counts_leave_normal_values_out() -> None:
    normal = FORM.entities({"enhancement": "Absent"})
    counts = entity_counts(FORM, FORM.entities(GOLD["fields"]), normal)
    assert (counts["abnormal_tp"], counts["abnormal_fp"], counts["abnormal_fn"]) == (0, 0, 5)
    assert (counts["gates"], counts["contradicted"]) == (1, 1)
    silent = entity_counts(FORM, FORM.entities(GOLD["fields"]), frozenset())
    assert (silent["gates"], silent["contradicted"]) == (1, 0)


def test_two_empty_fields_are_equal_but_an_unread_report_has_none() -> None:
    assert (
        fields_of(json.dumps({"enhancement": "Absent"})).counts["fields_equal"] == 1
    )  # distribution: none in both
    assert fields_of("no report").counts["fields_equal"] == 0


@pytest.mark.parametrize(
    ("text", "changes", "status"),
    [
        ("The wall is bright.", {}, "parse_error"),
        ('{"fields": {"enhancement": ', {"cut": True}, "truncated"),
        ("I cannot interpret medical images.", {}, "refusal"),
        ("", {"refused": True}, "refusal"),
        ('{"other": 1}', {}, "parse_error"),
    ],
)
def test_a_report_without_fields_says_why(text: str, changes: dict[str, bool], status: str) -> None:
    judged = fields_of(text, **changes)
    assert (judged.parse_status, judged.parsed, judged.counts["fn"]) == (status, (), 5)


def test_text_is_scored_without_json() -> None:
    judged = judge_text(CASE, reply("Late enhancement in the lateral wall"))
    assert (judged.parse_status, judged.rule) == ("ok", "whole_reply")
    assert judged.counts["lcs"] == 6
    assert judged.parsed == ("enhancement: Present", "regions: Lateral wall")
    assert (judged.counts["tp"], judged.counts["fp"], judged.counts["fn"]) == (2, 0, 3)


def test_text_entities_do_not_depend_on_the_fields() -> None:
    """Empty fields, right text: the two channels are scored separately."""
    of_both = reply(json.dumps(GOLD | {"fields": {"enhancement": "Absent"}}))
    assert judge_fields(CASE, of_both).counts["tp"] == 0
    assert judge_text(CASE, of_both).counts["tp"] == 5


def test_a_refused_report_has_no_text() -> None:
    judged = judge_text(CASE, reply("", refused=True))
    assert (judged.parse_status, judged.parsed, judged.counts["fn"]) == ("refusal", (), 5)
