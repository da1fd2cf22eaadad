"""Cells of the table of scores on the terminal."""

from typing import Any

import pytest

from cardiolens.score.statistics.outcomes import percent_read
from cardiolens.show.terminal.show import _cell

ROW: dict[str, Any] = {"value": 61.23, "low": 50.0, "high": 70.0, "method": "bootstrap"}
ROW |= {"n_items": 200, "n_parse_error": 0, "n_refusal": 0}


@pytest.mark.parametrize(
    ("n_parse_error", "n_refusal", "words"),
    [(0, 0, ""), (1, 1, ""), (2, 1, ", 98 % read"), (120, 30, ", 25 % read")],
)
def test_a_cell_says_how_many_replies_were_read_below_99_percent(
    n_parse_error: int, n_refusal: int, words: str
) -> None:
    row = ROW | {"n_parse_error": n_parse_error, "n_refusal": n_refusal}
    assert _cell(row) == f"61.2 (50.0 to 70.0){words}"


def test_a_score_of_no_item_has_no_share() -> None:
    assert percent_read(ROW | {"n_items": 0}) is None
