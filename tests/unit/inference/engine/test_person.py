"""People as readers: their readings are answers of a model, judged, scored and shown like any other's."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from page_run import write_record
from small_cohort import reader, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.config.model import ModelSpec
from cardiolens.inference.models.identity import readings_of
from cardiolens.inference.plan.plan import plan
from cardiolens.show.page.write import write_page
from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

SOME = ["C01", "C10", "L01"]


def truth(root: Path) -> dict[str, list[str]]:
    lines = map(json.loads, (root / "questions.jsonl").read_text().splitlines())
    return {line["qa_id"]: line["answer"] for line in lines if line["subtask"] in SOME}


def person(path: Path, readings: dict[str, list[str]]) -> dict[str, Any]:
    """An entry of `model` for somebody who took seven seconds a question."""
    lines = [
        {"qa_id": qa_id, "item": "x", "answer": keys, "seconds": 7.0} for qa_id, keys in readings.items()
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {"name": "r1", "engine": "person", "source": str(path)}


def verdicts(run: Run) -> list[dict[str, Any]]:
    return tables.read(run.verdicts, schemas.VERDICTS).to_pylist()


def test_readings_are_answers_with_their_seconds(root: Path, tmp_path: Path) -> None:
    right = truth(root)
    (tmp_path / "readings").mkdir()
    entry = person(tmp_path / "readings" / "r1.jsonl", right)
    spec = sweep_spec(root, entry, reader("oracle"), name="all", subtask=SOME)
    planned, judged = swept(spec)
    rows = verdicts(planned.run)
    assert {row["correct"] for row in rows} == {True}
    assert len(rows) == 2 * len(right)
    said = tables.read(planned.store.completions(planned.identities["r1"].model_key), schemas.COMPLETIONS)
    assert set(said["seconds"].to_pylist()) == {7.0}
    write_record(planned, judged)
    interval = {"value": 0.875, "low": 0.5, "high": None}
    agreed = {"subtask": "all", "readers": ["r1", "r2"], "n_pairs": 8, "n_patients": 4, "same": interval}
    lines = [{"schema": "human-reader-1", "reader": "r1"}, {"schema": "human-agreement-1", **agreed}]
    (tmp_path / "ceiling.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    write_page(planned.run, [planned.run], include_images=False)
    page = planned.run.page.read_text()
    assert "r1: people, who saw whole studies" in page
    assert "Simulated readers (oracle)" in page
    assert "Agreement between people who read (ceiling)" in page
    assert "87.5" in page


def test_what_was_not_read_is_skipped_and_cannot_tell_is_a_refusal(root: Path, tmp_path: Path) -> None:
    right = truth(root)
    unread, unsure, *_ = right
    told = {name: [] if name == unsure else keys for name, keys in right.items() if name != unread}
    spec = sweep_spec(root, person(tmp_path / "r1.jsonl", told), name="some", subtask=SOME)
    planned, _ = swept(spec)
    by_id = {row["qa_id"]: row for row in verdicts(planned.run)}
    assert by_id.pop(unread)["status"] == "skipped: not read"
    assert (by_id[unsure]["parse_status"], by_id.pop(unsure)["correct"]) == ("refusal", False)
    assert all(row["correct"] for row in by_id.values())


def test_under_a_control_nobody_read(root: Path, tmp_path: Path) -> None:
    entry = person(tmp_path / "r1.jsonl", truth(root))
    planned = plan(sweep_spec(root, entry, name="blind", subtask=SOME, control=["none", "blind"]))
    rows = tables.read(planned.run.requests("r1"), schemas.REQUESTS, ("arm_id", "status")).to_pylist()
    assert {row["status"] for row in rows if "blind" in row["arm_id"]} == {"skipped: not read in this form"}
    assert {row["status"] for row in rows if "blind" not in row["arm_id"]} == {"planned"}


def test_an_option_that_the_question_does_not_have_is_an_error_of_that_reading(
    root: Path, tmp_path: Path
) -> None:
    right = truth(root)
    strange = next(iter(right))
    entry = person(tmp_path / "r1.jsonl", right | {strange: ["Q"]})
    planned, judged = swept(sweep_spec(root, entry, name="strange", subtask=SOME))
    by_id = {row["qa_id"]: row["status"] for row in verdicts(planned.run)}
    assert by_id[strange] == "engine_error"
    assert judged.replies.unfinished == 1


def test_other_readings_are_another_reader(root: Path, tmp_path: Path) -> None:
    right = truth(root)
    keys = set()
    for readings in (right, {**right, next(iter(right)): []}):
        entry = person(tmp_path / "r1.jsonl", readings)
        keys.add(plan(sweep_spec(root, entry, name="key", subtask=SOME)).identities["r1"].model_key)
    assert len(keys) == 2


def test_a_question_id_may_hold_a_line_separator(tmp_path: Path) -> None:
    """The export writes it as it is, and Python takes it for the end of a line."""
    entry = person(tmp_path / "r1.jsonl", {})
    line = {"qa_id": "one\u2028two", "answer": ["A"], "seconds": 7.0}
    (tmp_path / "r1.jsonl").write_text(json.dumps(line, ensure_ascii=False) + "\n")
    assert list(readings_of(ModelSpec(**entry))) == ["one\u2028two"]


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda path: path.unlink(), "no such file"),
        (lambda path: path.write_text("[]\n"), "line 1: "),
        (lambda path: path.write_text('{"qa_id": 1, "answer": "A", "seconds": 1}\n'), "answer: Input should"),
        (lambda path: path.write_text(2 * path.read_text()), "stands twice"),
    ],
)
def test_a_file_of_no_readings_is_refused_by_name(
    damage: Callable[[Path], object], said: str, root: Path, tmp_path: Path
) -> None:
    entry = person(tmp_path / "r1.jsonl", truth(root))
    damage(tmp_path / "r1.jsonl")
    with pytest.raises(InputError, match=said):
        plan(sweep_spec(root, entry, name="bad", subtask=SOME))
