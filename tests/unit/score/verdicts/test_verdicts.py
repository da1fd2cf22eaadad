"""Verdicts: joined by key, one a (arm, question, channel)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cardiolens.base.errors import InputError
from cardiolens.score.verdicts.final_completions import Duplicates, duplicates
from cardiolens.score.verdicts.verdicts import judge
from cardiolens.storage.schemas import COMPLETIONS, QUESTIONS, REQUESTS, VERDICTS
from cardiolens.storage.tables import from_rows

OPTIONS = {
    "C10": ["Normal", "Mildly reduced", "Moderately reduced", "Severely reduced"],
    "L01": ["Absent", "Present"],
    "C02": ["Normal", "Thinned", "Thickened", "Bulging"],
}
TYPES = {"C10": "ordinal", "L01": "single", "C02": "multi"}
START = datetime(2026, 1, 1, tzinfo=UTC)


def question(study: str, subtask: str, answer: str, **changes: Any) -> dict[str, Any]:
    return {
        "qa_id": f"{study}:{subtask}",
        "study_id": study,
        "patient_id": f"patient-{study}",
        "tier": 1,
        "subtask": subtask,
        "sequence": "lge" if subtask == "L01" else "cine",
        "answer_type": TYPES[subtask],
        "options": [{"key": "ABCD"[at], "text": text} for at, text in enumerate(OPTIONS[subtask])],
        "exclusive": ["A"] if subtask == "C02" else [],
        "answer": list(answer),
    } | changes


def request(arm: str, qa_id: str, key: str, **changes: Any) -> dict[str, Any]:
    return {"arm_id": arm, "qa_id": qa_id, "request_key": key, "status": "planned"} | changes


def completion(key: str, text: str, minute: int = 0, **changes: Any) -> dict[str, Any]:
    written = START + timedelta(minutes=minute)
    row = {"request_key": key, "text": text, "status": "ok", "finish_reason": "stop", "written_at": written}
    return row | changes


def judged(
    requests: list[dict[str, Any]], completions: list[dict[str, Any]], questions: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    tables = (
        from_rows(requests, REQUESTS),
        from_rows(completions, COMPLETIONS),
        from_rows(questions, QUESTIONS),
    )
    verdicts = judge(*tables)
    assert verdicts.schema.equals(VERDICTS)
    return verdicts.to_pylist()  # type: ignore[no-any-return]


def verdict_of(text: str, subtask: str, answer: str, **changes: Any) -> dict[str, Any]:
    asked = [request("arm", f"s:{subtask}", "k")]
    (verdict,) = judged(asked, [completion("k", text, **changes)], [question("s", subtask, answer)])
    return verdict


def test_a_verdict_carries_question_reply_and_truth() -> None:
    assert verdict_of("ANSWER: C", "C10", "B") == {
        "arm_id": "arm",
        "qa_id": "s:C10",
        "channel": "answer",
        "study_id": "s",
        "patient_id": "patient-s",
        "tier": 1,
        "sequence": "cine",
        "subtask": "C10",
        "answer_type": "ordinal",
        "request_key": "k",
        "status": "judged",
        "parse_status": "ok",
        "rule": "answer_line",
        "parsed": ["C"],
        "gold": ["B"],
        "correct": False,
        "counts": [("options", 4.0), ("rank_error", 1.0)],
    }


@pytest.mark.parametrize(
    ("text", "tp", "fp", "fn", "correct"),
    [
        ("A, B", 1, 1, 1, False),
        ("B, C", 2, 0, 0, True),
        ("no idea", 0, 0, 2, False),
        ("B, C, D", 2, 1, 0, False),
    ],
)
def test_a_multi_verdict_counts_sets(text: str, tp: int, fp: int, fn: int, correct: bool) -> None:
    verdict = verdict_of(text, "C02", "BC")
    assert dict(verdict["counts"]) == {"options": 4, "tp": tp, "fp": fp, "fn": fn}
    assert verdict["correct"] is correct


@pytest.mark.parametrize(
    ("text", "changes", "status"),
    [
        ("B", {}, "ok"),
        ("A, B", {}, "inconsistent"),
        ("the wall", {}, "parse_error"),
        ("the wall", {"finish_reason": "length"}, "truncated"),
        ("B", {"finish_reason": "length"}, "truncated"),
        ("B\n\nThe wall", {"finish_reason": "length"}, "truncated"),
        ("I cannot help", {"finish_reason": "length"}, "truncated"),
        ("ANSWER: B\nThe wall", {"finish_reason": "length"}, "ok"),
        ("I cannot help with that.", {}, "refusal"),
        ("", {"status": "refused"}, "refusal"),
    ],
)
def test_every_way_to_fail_has_its_parse_status(text: str, changes: dict[str, Any], status: str) -> None:
    verdict = verdict_of(text, "C02", "B", **changes)
    assert (verdict["status"], verdict["parse_status"]) == ("judged", status)


@pytest.mark.parametrize("planned", ["overflow", "skipped: no view"])
def test_what_was_not_run_keeps_its_status_and_its_truth(planned: str) -> None:
    asked = [request("arm", "s:L01", "k", status=planned)]
    (verdict,) = judged(asked, [completion("k", "A")], [question("s", "L01", "B")])
    found = [verdict[name] for name in ("status", "parse_status", "parsed", "correct", "counts", "gold")]
    assert found == [planned, None, None, None, None, ["B"]]


def test_without_a_final_completion_a_request_failed_or_is_missing() -> None:
    asked = [
        request("arm", "s:L01", "failed"),
        request("arm", "s:C10", "nothing"),
        request("arm", "s:C02", "late"),
    ]
    questions = [question("s", subtask, "B") for subtask in ("L01", "C10", "C02")]
    replies = [
        completion("failed", "", status="engine_error"),
        completion("late", "", status="engine_error"),
        completion("late", "B", 1),
    ]
    statuses = {verdict["subtask"]: verdict["status"] for verdict in judged(asked, replies, questions)}
    assert statuses == {"L01": "engine_error", "C10": "missing", "C02": "judged"}


def test_a_letter_displayed_is_translated_into_the_original_key() -> None:
    asked = [request("arm", "s:C02", "k", option_keys=list("DCBA"))]
    questions = [question("s", "C02", "D")]
    (by_letter,) = judged(asked, [completion("k", "ANSWER: A, C")], questions)
    assert (by_letter["parsed"], by_letter["parse_status"]) == (["B", "D"], "ok")
    (by_text,) = judged(asked, [completion("k", "Bulging")], questions)
    assert (by_text["parsed"], by_text["correct"]) == (["D"], True)
    (exclusive,) = judged(asked, [completion("k", "ANSWER: C, D")], questions)
    assert (exclusive["parsed"], exclusive["parse_status"]) == (["A", "B"], "inconsistent")


def test_the_earliest_final_completion_counts_and_the_others_are_counted() -> None:
    replies = [
        completion("k", "A", 2),
        completion("k", "B", 1),
        completion("k", "C", 0, status="engine_error"),
        completion("k", "B", 3),
        completion("k", "B", 4, status="refused"),
        completion("other", "A", 0),
    ]
    (verdict,) = judged([request("arm", "s:L01", "k")], replies, [question("s", "L01", "B")])
    assert verdict["parsed"] == ["B"]
    assert duplicates(from_rows(replies, COMPLETIONS)) == Duplicates(agreeing=1, disagreeing=2)


def test_requests_of_several_arms_share_a_completion() -> None:
    asked = [request("b", "s:L01", "k"), request("a", "s:L01", "k")]
    verdicts = judged(asked, [completion("k", "B")], [question("s", "L01", "B")])
    assert [(verdict["arm_id"], verdict["correct"]) for verdict in verdicts] == [("a", True), ("b", True)]


def test_an_unknown_question_is_named() -> None:
    with pytest.raises(InputError, match=r"s:C99.*no such question"):
        judged([request("arm", "s:C99", "k")], [], [question("s", "L01", "B")])


def test_options_that_changed_since_the_run_are_named() -> None:
    asked = [request("arm", "s:L01", "k", option_keys=list("ABC"))]
    with pytest.raises(InputError, match=r"L01.*\['A', 'B', 'C'\].*\['A', 'B'\]"):
        judged(asked, [completion("k", "B")], [question("s", "L01", "B")])


@pytest.mark.parametrize("answer", ["Z", "", "AB"])
def test_a_truth_that_the_options_cannot_hold_is_named(answer: str) -> None:
    with pytest.raises(InputError, match=r"s:L01.*is not one of its options"):
        judged([request("arm", "s:L01", "k")], [], [question("s", "L01", answer)])


def test_a_question_given_twice_is_named() -> None:
    with pytest.raises(InputError, match=r"s:L01.*twice"):
        judged([], [], [question("s", "L01", "B")] * 2)
