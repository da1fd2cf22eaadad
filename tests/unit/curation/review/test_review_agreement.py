"""Agreement of two people: vectors, intervals, and the batch rule of protocol 9."""

from pathlib import Path

import numpy as np
import pytest
from reviewers import Table, items_of

from cardiolens.curation.review.agreement import Agreement, Pair, agreements, intervals
from cardiolens.curation.review.queue import outcomes_of


def pairs_of(table: list[list[int]], subtask: str = "C01", patients: int = 20) -> list[Pair]:
    cells = [(one, other) for one, row in enumerate(table) for other, n in enumerate(row) for _ in range(n)]
    return [
        Pair(f"P{place % patients}", subtask, ((str(one),), (str(other),)))
        for place, (one, other) in enumerate(cells)
    ]


def test_the_vector_of_the_protocol() -> None:
    kappa, ac1 = intervals(pairs_of([[40, 5], [5, 50]]))
    assert kappa.value == pytest.approx(0.798, abs=1e-3)
    assert kappa.low < kappa.value < kappa.high
    chance = 2 * 0.45 * 0.55  # Gwet (2008): shares of the first category are .45 on both sides
    assert ac1.value == pytest.approx((0.9 - chance) / (1 - chance), abs=1e-9)


def test_pooled_over_subtasks_chance_is_that_of_each() -> None:
    """Two subtasks without any agreement beyond chance have kappa 0 together, whatever their answers are."""
    both = pairs_of([[25, 25], [25, 25]]) + pairs_of([[1, 9], [9, 81]], "C02")
    kappa, _ = intervals(both)
    assert kappa.value == pytest.approx(0, abs=1e-9)


def test_the_interval_is_by_patient() -> None:
    many, _ = intervals(pairs_of([[40, 5], [5, 50]], patients=100))
    few, _ = intervals(pairs_of([[40, 5], [5, 50]], patients=4))
    alone, _ = intervals(pairs_of([[40, 5], [5, 50]], patients=1))
    assert few.value == many.value == alone.value
    assert np.isnan(alone.low)
    assert np.isnan(alone.high)
    assert few.high - few.low != many.high - many.low


def batch_of(tmp_path: Path, n: int, wrong: int = 0, differ: int = 0) -> Agreement:
    """A batch of n items, of which some are corrected by both, and some by the second reader alone."""
    items = items_of(tmp_path, n)
    table = Table(tmp_path, items)
    for reader in ("anna", "berta"):
        for place in range(n):
            corrects = place < wrong or (reader == "berta" and place < wrong + differ)
            said = ("correct", {"answer": ["B"]}) if corrects else ("accept", {})
            assert table.press(reader, said[0], **said[1]) is None
    table.everything("third")
    (batch,), (subtask,), _ = agreements(items, outcomes_of(items, table.queue.reviews))
    assert (batch.kappa.value, batch.decision) == (
        pytest.approx(subtask.kappa.value, nan_ok=True),
        subtask.decision,
    )
    return batch


@pytest.mark.parametrize(
    ("size", "decision", "why"),
    [
        ((35, 0, 0), "pass", ()),
        ((34, 0, 0), "small", ("lower bound of accepted below 90%",)),
        ((32, 0, 1), "small", ("kappa below 0.80", "lower bound of accepted below 90%")),
        ((34, 2, 0), "fail", ("accepted below 95%", "lower bound of accepted below 90%")),
        ((120, 7, 0), "fail", ("accepted below 95%",)),
    ],
)
def test_the_rule_of_a_batch(tmp_path: Path, size, decision, why) -> None:
    batch = batch_of(tmp_path, *size)
    assert batch.decision == decision
    assert set(why) <= set(batch.why)


def test_a_batch_is_open_until_every_item_is_settled(tmp_path: Path) -> None:
    items = items_of(tmp_path, 40)
    table = Table(tmp_path, items)
    table.everything("anna")
    for _ in range(39):
        table.press("berta", "accept")
    (batch,), *_ = agreements(items, outcomes_of(items, table.queue.reviews))
    assert (batch.decision, batch.n_pairs, batch.n_settled) == ("open", 39, 39)
    table.press("berta", "cannot_tell")
    (batch,), *_ = agreements(items, outcomes_of(items, table.queue.reviews))
    assert (batch.decision, batch.n_pairs, batch.n_settled) == ("open", 40, 39)
