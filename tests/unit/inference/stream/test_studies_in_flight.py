"""Tests of how many studies one replica holds at once."""

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.inference.plan.missing import WORK
from cardiolens.inference.stream.pipeline import _studies_in_flight


@given(
    sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=40),
    width=st.integers(1, 400),
    most=st.integers(1, 32),
)
def test_a_replica_holds_no_more_studies_than_keep_it_busy(sizes: list[int], width: int, most: int) -> None:
    rows = [{"study_id": "S", "part": "p", "rows": [0] * size, "attempts": [1] * size} for size in sizes]
    studies = _studies_in_flight(pa.Table.from_pylist(rows, WORK), width, most)
    mean = sum(sizes) / len(sizes)
    assert 1 <= studies <= most
    assert studies == most or studies >= 2
    assert studies == most or (studies - 1) * mean >= 2 * width  # also while one of them ends
    assert studies <= 2 or (studies - 2) * mean < 2 * width
