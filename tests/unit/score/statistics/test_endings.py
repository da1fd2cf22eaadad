"""How requests ended, beside every score."""

from typing import Any

import pytest
from made_verdicts import verdict

from cardiolens.score.statistics.scores import score
from cardiolens.score.statistics.statistic import Settings
from cardiolens.score.statistics.verdict_rows import judged_shares, percent_read, status_counts
from cardiolens.show.page.columns import caveats
from cardiolens.storage.schemas import VERDICTS
from cardiolens.storage.tables import from_rows


def ended(number: int, status: str, parse_status: str | None = None) -> dict[str, Any]:
    lost = {} if status == "judged" else {"parsed": None, "counts": None}
    return verdict(f"p{number}", "L01", "A", "A", status=status, parse_status=parse_status) | lost


ROWS = [
    *(ended(number, "judged", "ok") for number in range(97)),
    ended(97, "judged", "refusal"),
    ended(98, "overflow"),
    ended(99, "skipped: no view"),
]


def test_every_way_to_end_is_counted() -> None:
    counted = status_counts(from_rows(ROWS, VERDICTS))
    found = {(row["status"], row["parse_status"]): row["n"] for row in counted}
    expected = {
        ("judged", "ok"): 97,
        ("judged", "refusal"): 1,
        ("overflow", None): 1,
        ("skipped: no view", None): 1,
    }
    assert found == expected


def rows_of(rows: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    scores = score(from_rows(rows, VERDICTS), [], Settings(1, 10, 1)).tables[0]
    return {(row["metric"], row["scope"]): row for row in scores.to_pylist()}


def test_a_score_of_less_than_99_percent_of_its_items_says_so() -> None:
    assert judged_shares(from_rows(ROWS, VERDICTS))["arm", "sequence:lge"] == 0.98
    rows = rows_of(ROWS)
    for scope in ("subtask:L01", "sequence:lge", "tier:1"):
        assert rows["primary", scope]["percent_judged"] == pytest.approx(98)
        assert caveats(rows["primary", scope]) == ["incomplete, 98.0 % of items judged"]
    assert rows["primary", "tier:1"]["n_items"] == 98
    assert percent_read(rows["primary", "tier:1"]) == 98


def test_a_score_of_99_percent_is_complete() -> None:
    rows = rows_of([*ROWS[:-1], ended(100, "judged", "ok")])
    assert rows["primary", "tier:1"]["percent_judged"] is None
    assert caveats(rows["primary", "tier:1"]) == []
