"""Who gets which item: blindness, the third person, undo, repeats, and readings."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reviewers import Table, items_of

from cardiolens.curation.review.queue import NAME, DecisionRequest, outcome, read_ledger


@pytest.fixture
def table(tmp_path: Path) -> Table:
    return Table(tmp_path, items_of(tmp_path, 4))


def test_two_readers_decide_and_a_third_one_comes_too_late(table: Table) -> None:
    assert [table.shown(name) for name in ("anna", "berta", "clara")] == ["S0000:C01"] * 3
    assert table.queue.left("berta", "reader") == 4
    table.everything("anna")
    assert table.queue.left("berta", "reader") == 4, "which does not tell whether somebody else has decided"
    late = table.queue.items[next(iter(table.queue.items))]
    assert table.press("berta", "accept") is None
    asked = DecisionRequest(id="z" * 16, qa_id=late.qa_id, item=late.digest, verdict="accept")
    assert "two others decided" in table.queue.decide(asked, "clara", "reader")
    assert table.shown("clara") == "S0001:C01"


def test_two_who_disagree_bring_an_item_to_the_third_alone(table: Table) -> None:
    assert table.press("anna", "accept") is None
    assert table.press("berta", "correct", answer=["B"]) is None
    assert table.shown("third") == "S0000:C01"
    key = next(iter(table.queue.items))
    assert outcome(table.queue.reviews.of("verify", key)).state == "disputed"
    assert table.press("third", "correct", answer=["C"]) is None
    done = outcome(table.queue.reviews.of("verify", key))
    assert (done.state, done.adjudicated, done.final.answer) == ("settled", True, ("C",))
    assert table.press("berta", undo=True) == "a third person decided on it since; it cannot be taken back"


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        (("correct", {"answer": ["B"]}), ("correct", {"answer": ["B"]}), True),
        (("correct", {"answer": ["B"]}), ("correct", {"answer": ["C"]}), False),
        (("reject", {"reason": "bad_images"}), ("reject", {"reason": "other_study"}), True),
        (("accept", {}), ("cannot_tell", {}), False),
    ],
)
def test_people_agree_if_verdict_and_answer_are_the_same(table: Table, one, other, agree) -> None:
    assert table.press("anna", one[0], **one[1]) is None
    assert table.press("berta", other[0], **other[1]) is None
    assert (table.shown("third") is None) == agree


@pytest.mark.parametrize(
    ("verdict", "more"),
    [
        (None, {}),
        ("correct", {"answer": ["Z"]}),
        ("correct", {"answer": ["A"]}),  # what is proposed
        ("reject", {"reason": ""}),
        ("accept", {"reason": "bad_images"}),
    ],
)
def test_what_no_key_of_the_page_says_is_refused_and_not_kept(table: Table, verdict, more) -> None:
    assert table.press("anna", verdict, **more)
    assert table.queue.done("anna") == 0


def test_a_key_that_is_sent_again_counts_once_also_after_a_restart(table: Table, tmp_path: Path) -> None:
    for _ in range(3):
        assert table.press("anna", "accept", name="the-same-key-12345") is None
    assert table.queue.done("anna") == 1
    table.ledger.close()
    again = Table(tmp_path, list(table.queue.items.values()))
    assert again.press("anna", "accept", name="the-same-key-12345") is None
    assert again.queue.done("anna") == 1
    assert again.press("anna", undo=True, name="undo-of-it-1234567") is None
    assert again.press("anna", undo=True, name="undo-of-it-1234567") is None
    assert again.queue.done("anna") == 0


def test_who_saw_the_truth_of_an_item_cannot_read_it(table: Table, tmp_path: Path) -> None:
    table.press("anna", "accept")
    assert table.shown("anna") == "S0001:C01", "shown, and not decided on"
    items = list(table.queue.items.values())
    table.ledger.close()
    reading = Table(tmp_path, items, mode="read")
    assert reading.shown("anna") == "S0002:C01"
    assert reading.shown("berta") == "S0000:C01"
    asked = DecisionRequest(
        id="y" * 16, qa_id=items[0].qa_id, item=items[0].digest, verdict="answer", answer=("A",)
    )
    assert "saw its answer" in reading.queue.decide(asked, "anna", "reader")
    assert reading.everything("anna", "answer", answer=["B"]) == 2
    assert reading.everything("berta", "answer", answer=["B"]) == 4
    assert reading.press("berta", undo=True) is None
    assert reading.queue.done("berta") == 3


PRESSES = st.lists(
    st.tuples(
        st.sampled_from(["anna", "berta", "clara", "third"]),
        st.sampled_from(["accept", "reject", "cannot_tell", "B", "C", "undo"]),
    ),
    max_size=60,
)


@given(presses=PRESSES)
@settings(max_examples=60)
def test_whatever_is_pressed_no_item_has_three_first_readers_and_the_file_says_the_same(
    tmp_path_factory: pytest.TempPathFactory, presses
) -> None:
    folder = tmp_path_factory.mktemp("any")
    table = Table(folder, items_of(folder, 3))
    for reader, key in presses:
        if key == "undo":
            table.press(reader, undo=True)
        elif key in ("B", "C"):
            table.press(reader, "correct", answer=[key])
        elif table.shown(reader) is not None:
            table.press(reader, key)
    for key in table.queue.items:
        decisions = table.queue.reviews.of("verify", key)
        assert sum(not line.third for line in decisions.values()) <= 2
        if any(line.third for line in decisions.values()):
            assert len({line.said for line in outcome(decisions).firsts}) == 2
    table.ledger.close()
    again = read_ledger(folder / NAME)
    assert again.decided == table.queue.reviews.decided
    assert again.seen == table.queue.reviews.seen
