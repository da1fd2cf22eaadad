"""Agreement between people who read: by patient, on what both read; what is missing is no disagreement."""

import json
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reviewers import Table, items_of

from cardiolens.curation.review.agreement import ceiling, lines_of, people_of
from cardiolens.curation.review.queue import Line, Reviews

ANSWERS = st.sampled_from([(), ("A",), ("B",), ("C",)])


def reviews_of(items: list, said: dict[str, list[tuple[str, ...] | None]]) -> Reviews:
    """What people read, without a server: None where somebody did not."""
    reviews = Reviews()
    for reader, answers in said.items():
        for item, answer in zip(items, answers, strict=True):
            if answer is not None:
                reviews.add(
                    Line(
                        id=f"{reader}-{item.qa_id}"[-64:].rjust(8, "0"),
                        at="2026-01-01T00:00:00.000+00:00",
                        event="decided",
                        mode="read",
                        reader=reader,
                        qa_id=item.qa_id,
                        item=item.digest,
                        verdict="answer" if answer else "cannot_tell",
                        answer=answer,
                        seconds=2.0,
                    )
                )
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
