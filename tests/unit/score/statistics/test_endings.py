"""How requests ended, beside every score."""

from typing import Any

from cardiolens.score.claims.collapse_analysis import collapse
from cardiolens.score.claims.evidence_analysis import Evidence
from cardiolens.score.claims.sentences import threshold
from cardiolens.score.statistics.factors import ArmFactors
from cardiolens.score.statistics.outcomes import judged_shares, status_counts
from cardiolens.score.statistics.scores import score
from cardiolens.show.terminal import ending
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows


def verdict(number: int, status: str, parse_status: str | None = None, **changes: Any) -> dict[str, Any]:
    judged = status == "judged"
    return {
        "arm_id": "arm",
        "qa_id": f"p{number}:L01",
        "channel": "answer",
        "patient_id": f"p{number}",
        "tier": 1,
        "sequence": "lge",
        "subtask": "L01",
        "answer_type": "single",
        "status": status,
        "parse_status": parse_status,
        "parsed": ["A"] if judged else None,
        "gold": ["A"],
        "counts": [("options", 2.0)] if judged else None,
    } | changes


ROWS = [
    *(verdict(number, "judged", "ok") for number in range(97)),
    verdict(97, "judged", "refusal"),
    verdict(98, "overflow"),
    verdict(99, "skipped: no view"),
]


def test_every_way_to_end_is_counted() -> None:
    counted = status_counts(from_rows(ROWS, VERDICTS)).to_pylist()
    found = {(row["status"], row["parse_status"]): row["n"] for row in counted}
    expected = {
        ("judged", "ok"): 97,
        ("judged", "refusal"): 1,
        ("overflow", None): 1,
        ("skipped: no view", None): 1,
    }
    assert found == expected


def test_a_cell_below_99_percent_is_marked_incomplete() -> None:
    table = from_rows(ROWS, VERDICTS)
    assert judged_shares(table)["arm", "sequence:lge"] == 0.98
    rows = {(row["metric"], row["scope"]): row for row in score(table, 1, 10, 1).to_pylist()}
    for scope in ("subtask:L01", "sequence:lge", "tier:1"):
        assert rows["primary", scope]["method"].startswith("incomplete, 98.0 % of items judged; ")
    assert rows["primary", "tier:1"]["n_items"] == 98


def test_a_cell_of_99_percent_is_not() -> None:
    rows = score(from_rows([*ROWS[:-1], verdict(100, "judged", "ok")], VERDICTS), 1, 10, 1).to_pylist()
    assert not any("incomplete" in row["method"] for row in rows if row["scope"] == "tier:1")


def test_an_incomplete_cell_is_so_in_words_and_on_the_terminal() -> None:
    rows = score(from_rows(ROWS, VERDICTS), 1, 10, 1).to_pylist()
    arm = ArmFactors("arm", "m", "clinical", "16", "standard")
    (shown,) = [row for row in collapse(rows, [arm]).rows if row["scope"] == "subtask:L01"]
    assert str(shown["method"]).startswith("incomplete, 98.0 % of items judged; ")
    (score_row,) = [row for row in rows if (row["metric"], row["scope"]) == ("primary", "tier:1")]
    said = threshold("it reads", score_row, 50.0, Evidence(0.01)).sentence
    assert "97 patients" in said or "98 patients" in said
    assert "(incomplete, 98.0 % of items judged)" in said
    notes = ending._notes({"it reads": {"tier:1": score_row}}, 100)
    assert notes == ["Replies that could be read: it reads 98 % on tier 1", "Incomplete: it reads on tier 1"]
