"""Tests of how work is divided into blocks, and of how many of them one replica holds at once."""

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.inference.plan.missing import WORK
from cardiolens.inference.stream.replica_resources import blocks, blocks_in_flight

SIZES = st.lists(st.one_of(st.integers(1, 4), st.integers(1, 3000)), min_size=1, max_size=60)


def work_of(sizes: list[int]) -> pa.Table:
    rows = [
        {"study_id": f"S{n}", "part": "p", "rows": [0] * size, "attempts": [1] * size}
        for n, size in enumerate(sizes)
    ]
    return pa.Table.from_pylist(rows, WORK)


@given(sizes=SIZES, replicas=st.integers(1, 8), most=st.integers(1, 300))
def test_every_study_is_in_one_block_in_order(sizes: list[int], replicas: int, most: int) -> None:
    work = work_of(sizes)
    divided = blocks(work, replicas, most)
    assert pa.concat_tables(divided).equals(work)
    assert all(block.num_rows for block in divided)


@given(sizes=SIZES, replicas=st.integers(1, 8), most=st.integers(1, 300))
def test_small_studies_share_a_block_and_leave_enough_blocks(
    sizes: list[int], replicas: int, most: int
) -> None:
    divided = [[len(rows) for rows in block["rows"]] for block in blocks(work_of(sizes), replicas, most)]
    for block in divided:
        assert len(block) == 1 or sum(block) <= 64
        assert len(block) <= max(1, most // 2)
    assert len(divided) >= min(len(sizes), 8 * replicas) or max(sizes) * 8 * replicas > sum(sizes)
    for block, following in pairwise(divided):  # no block could have been larger
        fits = min(64, sum(sizes) // (8 * replicas))
        assert sum(block) + following[0] > fits or len(block) == max(1, most // 2)


@given(sizes=SIZES, width=st.integers(1, 400), most=st.integers(1, 300))
def test_a_replica_holds_no_more_than_keeps_it_busy(sizes: list[int], width: int, most: int) -> None:
    divided = blocks(work_of(sizes), 1, most)
    held = blocks_in_flight(divided, width, most)
    largest = max(block.num_rows for block in divided)
    mean = sum(sizes) / len(divided)
    assert held == 1 or held * largest <= most
    at_most = max(1, most // largest)
    assert held == at_most or held >= 2
    assert held == at_most or (held - 1) * mean >= 2 * width  # also while one of them ends
    assert held <= 2 or (held - 2) * mean < 2 * width
