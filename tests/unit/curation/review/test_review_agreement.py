"""Agreement of two people: vectors, intervals, the batch rule of protocol 9, and of those who read."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reviewers import Table, items_of

from cardiolens.curation.review.agreement import (
    Agreement,
    Pair,
    agreements,
    ceiling,
    intervals,
    lines_of,
    people_of,
)
from cardiolens.curation.review.queue import Line, Reviews, outcomes_of


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


ANSWERS = st.sampled_from([(), ("A",), ("B",), ("C",)])


def reviews_of(items: list, said: dict[str, list[tuple[str, ...] | None]]) -> Reviews:
    """What people read, without a server: None where somebody did not."""
    reviews = Reviews()
    for reader, answers in said.items():
        for item, answer in zip(items, answers, strict=True):
            if answer is not None:
                told = {"id": f"{reader}-{item.qa_id}", "at": "2026", "event": "decided", "mode": "read"}
                told |= {"reader": reader, "qa_id": item.qa_id, "item": item.digest, "answer": answer}
                told |= {"verdict": "answer" if answer else "cannot_tell", "seconds": 2.0}
                reviews.add(Line.model_validate(told))
    return reviews


def by_key(items: list) -> dict:
    return {(item.qa_id, item.digest): item for item in items}


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(*[st.none() | ANSWERS] * 3), min_size=6, max_size=6))
def test_pairs_are_counted_on_what_both_read_alone(tmp_path: Path, said: list) -> None:
    items = items_of(tmp_path, 3, ("C01", "C10"))
    names = ("anna", "berta", "clara")
    answers = {name: [row[place] for row in said] for place, name in enumerate(names)}
    rows = ceiling(by_key(items), reviews_of(items, answers))
    both = [
        (row[one], row[other])
        for row in said
        for one, other in ((0, 1), (0, 2), (1, 2))
        if row[one] is not None and row[other] is not None
    ]
    assert (rows[0].n_pairs if rows else 0) == len(both)
    if both:
        share = sum(one == other for one, other in both) / len(both)
        assert np.isclose(rows[0].same.value, share)
        assert sum(row.n_pairs for row in rows if row.subtask != "all") == len(both)
    for person in people_of(by_key(items), reviews_of(items, answers)):
        assert person.n_read + person.n_missing + person.n_barred == person.n_items == 6


def test_whose_answer_was_shown_is_barred_and_not_missing(tmp_path: Path) -> None:
    items = items_of(tmp_path, 3)
    table = Table(tmp_path, items)
    table.press("anna", "accept")
    table.shown("anna")  # and not decided on
    table.ledger.close()
    reading = Table(tmp_path, items, mode="read")
    reading.pressed = 100
    assert reading.everything("anna", "cannot_tell", seconds=1) == 1
    person = people_of(reading.queue.items, reading.queue.reviews)[0]
    assert (person.n_read, person.n_barred, person.n_missing, person.n_cannot_tell) == (1, 2, 0, 1)
    assert "1/3 read, 0 missing, 2 barred since they had been shown the answer" in person.line()


def test_of_one_patient_there_is_no_interval_and_the_file_has_null(tmp_path: Path) -> None:
    items = items_of(tmp_path, 1, ("C01", "C10"))
    reviews = reviews_of(items, {"anna": [("A",), ("B",)], "berta": [("A",), ("C",)]})
    lines = lines_of(people_of(by_key(items), reviews), ceiling(by_key(items), reviews))
    told = json.loads(json.dumps(lines[2], allow_nan=False))
    assert (told["same"]["value"], told["same"]["low"]) == (0.5, None)
