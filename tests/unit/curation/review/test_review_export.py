"""What a review comes to: each item in one of three files, and a sweep takes the verified ones."""

from pathlib import Path

import pytest
from reviewers import CATALOGUE, Table, items_of

from cardiolens.base.errors import InputError
from cardiolens.curation.review.review_commands import Export, Serve, _keep_sources, export, exported, write
from cardiolens.curation.review.review_items import BATCH, _batches, read_items
from tests.unit.questions_file import read_questions
from tests.unit.study_folders import study


def test_what_is_verified_enters_a_sweep_and_drafts_do_not(tmp_path: Path) -> None:
    items = items_of(tmp_path, 60)
    table = Table(tmp_path, items)
    for reader in ("anna", "berta"):
        assert table.press(reader, "correct", answer=["B"]) is None
        assert table.everything(reader) == 59
    result = exported(table.queue.items, table.queue.reviews)
    write(tmp_path / "out", result)
    rows = read_questions(tmp_path / "out" / "questions.jsonl", CATALOGUE).to_pylist()
    assert [row["answer"] for row in rows] == [["B"], *[["A"]] * 59]
    told = result.verified[0]["verification"]
    assert told["status"] == "verified"
    assert (told["stage"], told["verdict"], told["kappa_batch"], told["readers"]) == (8, "correct", "b01", 2)
    assert told["kappa"] == 1
    assert told["by"] == ["anna", "berta"]
    assert told["at"] == max(
        line.at for line in [*table.queue.reviews.of_reader("berta", "verify").values()][:1]
    )
    with pytest.raises(InputError, match="are not verified"):
        read_questions(tmp_path / "drafts.jsonl", CATALOGUE)
    assert result.rejects == result.open == []


def test_every_item_stands_in_exactly_one_file_with_its_reason(tmp_path: Path) -> None:
    table = Table(tmp_path, items_of(tmp_path, 60))
    said = [("reject", {"reason": "other_study"}), ("cannot_tell", {}), ("accept", {})]
    for reader in ("anna", "berta"):
        for verdict, more in said:
            table.press(reader, verdict, **more)
    table.press("anna", "accept")
    result = exported(table.queue.items, table.queue.reviews)
    assert [line["reason"] for line in result.rejects] == ["other_study", "cannot_tell"]
    assert [line["verification"]["review"] for line in result.open[:2]] == ["batch_open", "open"]
    assert len(result.verified) + len(result.rejects) + len(result.open) == 60
    assert all(line["verification"]["status"] == "draft" for line in result.open)


def test_an_export_says_that_nothing_is_decided_and_leaves_nothing_that_was(tmp_path: Path, capsys) -> None:
    items_of(tmp_path, 1)
    study(tmp_path / "studies" / "S0000")
    given = {"questions": tmp_path / "drafts.jsonl", "studies": tmp_path / "studies", "out": tmp_path / "out"}
    _keep_sources(Serve(**given, mode="verify"))
    items = read_items(given["questions"], given["studies"], CATALOGUE, "verify").items
    table, verified = Table(given["out"], items), given["out"] / "questions.jsonl"
    for reader in ("anna", "berta"):
        table.press(reader, "accept")
    export(Export(out=given["out"]))
    assert verified.read_text()
    for reader in ("anna", "berta"):
        table.press(reader, undo=True)
    assert export(Export(out=given["out"])) == 1
    assert "0 verified, 0 rejected, 1 open" in capsys.readouterr().out
    assert not verified.read_text()


def conditional() -> tuple[str, str, str, str]:
    """A parent and a child of the catalogue, an answer that opens the child, and one that does not."""
    for child in CATALOGUE.subtasks.values():
        if child.parent and child.answer_type != "report":
            parent = CATALOGUE[child.parent]
            closed = [key for key in parent.keys if key not in child.parent_answers]
            if closed and parent.answer_type != "multi":
                return parent.id, child.id, child.parent_answers[0], closed[0]
    raise AssertionError("no such pair")


@pytest.mark.parametrize("how", ["corrected", "open"])
def test_a_question_that_its_parent_no_longer_opens_is_not_verified(tmp_path: Path, how: str) -> None:
    parent, child, opened, closed = conditional()
    items = items_of(tmp_path, 40, (parent, child), {parent: opened})
    table = Table(tmp_path, items)
    for reader in ("anna", "berta"):
        if how == "corrected":
            assert table.press(reader, "correct", answer=[closed]) is None
        table.everything(reader)
    if how == "open":
        table.press("berta", undo=True)
        result = exported(table.queue.items, table.queue.reviews)
        assert result.verified == []
        return
    result = exported(table.queue.items, table.queue.reviews)
    reasons = {line["qa_id"]: line["reason"] for line in result.rejects}
    assert reasons[f"S0000:{child}"] == "parent_says_otherwise"
    assert len(result.verified) == 80 - len(reasons)


@pytest.mark.parametrize("per_study", [1, 35])
def test_batches_are_whole_studies_and_none_is_small(per_study: int) -> None:
    studies = [f"S{place // per_study:04d}" for place in range(1234)]
    batches = list(_batches(studies))
    sizes = [batches.count(name) for name in dict.fromkeys(batches)]
    assert min(sizes) >= BATCH
    for name in set(studies):
        assert len({batch for batch, own in zip(batches, studies, strict=True) if own == name}) == 1
    assert list(_batches(["S"] * 5)) == ["b01"] * 5


def test_accepted_drafts_are_counted_by_who_drafted_them(tmp_path: Path) -> None:
    items = items_of(tmp_path, 4, marks=("both", "both", "rules", ""))
    table = Table(tmp_path, items)
    for reader in ("anna", "berta"):
        assert table.press(reader, "correct", answer=["B"]) is None
        table.everything(reader)
    result = exported(table.queue.items, table.queue.reviews)
    assert [(row.name, row.n_items, row.n_accepted) for row in result.agreements.marks] == [
        ("drafted by both", 2, 1),
        ("drafted by rules", 1, 1),
    ]
