"""Wording as a factor: other words, the same question, frames and ids."""

from pathlib import Path
from typing import Any

import pytest
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.plan import plan
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.storage import schemas, tables

SUBTASKS = ["C02", "C10", "D01", "R-T2"]
CATALOGUE = load_catalogue("openprotocol-1")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("wordings"), 6)


def rows_of(root: Path, **changes: Any) -> dict[int, list[dict[str, Any]]]:
    """Requests by wording, in order of qa_id."""
    planned = plan(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, **changes))
    wording = {arm.arm_id: arm.wording for arm in planned.arms}
    found: dict[int, list[dict[str, Any]]] = {}
    for row in tables.read(planned.run.requests("oracle"), schemas.REQUESTS).sort_by("qa_id").to_pylist():
        found.setdefault(wording[row["arm_id"]], []).append(row)
    return found


def test_a_wording_changes_the_text_and_nothing_else(root: Path) -> None:
    found = rows_of(root, wording=[0, 1, 2])
    for number in (1, 2):
        for own, other in zip(found[0], found[number], strict=True):
            subtask = CATALOGUE[own["subtask"]]
            said = own["prompt"].replace(subtask.question, subtask.wordings[number - 1])
            assert other["prompt"] == said != own["prompt"]
            assert other["request_key"] != own["request_key"]
            assert (other["frames"], other["option_keys"]) == (own["frames"], own["option_keys"])


def test_wordings_are_judged_and_compared_as_a_factor(root: Path) -> None:
    planned, judged = swept(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, wording=[0, 2]))
    own, other = (arm.arm_id for arm in planned.arms)
    scores = [row for row in judged.scores.to_pylist() if row["metric"] == "primary"]
    assert {row["arm_id"] for row in scores} >= {own, other}
    assert all(row["value"] == 100 for row in scores)
    (compared,) = {(row["arm_id"], row["versus_arm_id"]) for row in judged.comparisons.to_pylist()}
    assert compared == (other, own)


@pytest.mark.parametrize(
    ("wording", "said"),
    [
        ([3], "wording 3: subtask C02 has 2 wordings besides its own"),
        ([1, 1], "names an entry twice"),
    ],
)
def test_a_wording_that_is_none_is_refused(root: Path, wording: list[int], said: str) -> None:
    with pytest.raises(InputError, match=said):
        plan(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, wording=wording))


def test_a_question_in_words_of_its_own_has_no_other_wording(root: Path, tmp_path: Path) -> None:
    changed = tmp_path / "questions.jsonl"
    lines = (root / "questions.jsonl").read_text()
    changed.write_text(lines.replace(CATALOGUE["C10"].question, "How well does it pump?"))
    dataset = {"name": "small", "studies": root, "questions": changed}
    plan(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, dataset=dataset, name="own"))
    with pytest.raises(InputError, match="asks in words of its own"):
        plan(sweep_spec(root, reader("oracle"), subtask=SUBTASKS, dataset=dataset, wording=[0, 1]))
