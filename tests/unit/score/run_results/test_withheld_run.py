"""Questions with withheld answers are asked and not judged: they have no verdict and enter no score."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from page_run import write_record
from small_cohort import make_cohort, reader, sweep_spec, swept

from cardiolens.base.errors import InputError
from cardiolens.inference.plan.plan import plan
from cardiolens.score.run_results.scoring import judge_and_write
from cardiolens.show.page.write import write_page
from cardiolens.show.terminal.show import show_withheld
from cardiolens.workflow.steps.judge_run import judge

SOME = ["C02", "C10", "D01", "R-CINE"]
READERS = (reader("uniform"), reader("constant", answer="A"))


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_cohort(tmp_path_factory.mktemp("cohort"), 8)


@pytest.fixture
def root(cohort: Path, tmp_path: Path) -> Path:
    return shutil.copytree(cohort, tmp_path / "cohort")


def lines(root: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root / "questions.jsonl").read_text().splitlines()]


def write(root: Path, records: list[dict[str, Any]]) -> None:
    (root / "questions.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def withhold(root: Path, first: str) -> None:
    """Withhold the answers of the patients from `first`; leave other fields as they are."""
    kept = [
        {name: value for name, value in record.items() if name not in ("answer", "reference")}
        | {"withheld": True}
        if record["patient_id"] >= first
        else record
        for record in lines(root)
    ]
    write(root, kept)


def test_scores_are_those_of_the_answered_questions_alone(root: Path) -> None:
    every = lines(root)
    write(root, [record for record in every if record["patient_id"] < "PH-0005"])
    _, alone = swept(sweep_spec(root, *READERS, subtask=SOME, control=["none", "blind"]))
    write(root, every)
    withhold(root, "PH-0005")
    _, judged = swept(sweep_spec(root, *READERS, subtask=SOME, control=["none", "blind"]))
    assert judged.replies.withheld == sum(
        record["subtask"] in SOME and record["patient_id"] >= "PH-0005" for record in every
    )
    assert judged.replies.counts["ok"] > alone.replies.counts["ok"]  # they were asked
    assert judged.replies.verdicts.equals(alone.replies.verdicts)
    assert repr(judged.scores.to_pylist()) == repr(alone.scores.to_pylist())
    assert max(judged.replies.verdicts["patient_id"].to_pylist()) == "PH-0004"


def test_the_page_and_the_terminal_say_how_many(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    withhold(root, "PH-0005")
    planned, judged = swept(sweep_spec(root, *READERS, subtask=SOME))
    write_record(planned, judged)
    page = write_page(planned.run, [planned.run]).read_text()
    assert f"The answers of {judged.replies.withheld} questions are withheld" in page
    capsys.readouterr()
    assert judge(planned.run) == 0
    said = capsys.readouterr().out
    assert f"withheld: the answers of {judged.replies.withheld} questions are not here" in said
    assert "0 changed, 0 new, 0 gone" in said


def test_a_run_without_any_answer_is_a_run(root: Path) -> None:
    withhold(root, "")
    planned, judged = swept(sweep_spec(root, *READERS, subtask=SOME))
    write_record(planned, judged)
    assert (judged.replies.verdicts.num_rows, judged.scores.num_rows) == (0, 0)
    assert judged.replies.withheld == sum(record["subtask"] in SOME for record in lines(root))
    assert judged.replies.counts["ok"] > 0
    assert "questions are withheld" in write_page(planned.run, [planned.run]).read_text()
    assert judge(planned.run) == 0
    keys = {name: identity.model_key for name, identity in planned.identities.items()}
    again = judge_and_write(planned.run, planned.store, keys, planned.spec)
    assert again.replies.withheld == judged.replies.withheld


@pytest.mark.parametrize("name", ["oracle", "prevalence", "noisy"])
def test_a_reader_of_the_truth_is_refused(root: Path, name: str) -> None:
    withhold(root, "PH-0008")
    options = {"error": 0.1} if name == "noisy" else {}
    with pytest.raises(InputError, match=rf"withheld, and model {name} is a simulated reader"):
        plan(sweep_spec(root, reader(name, **options)))


def test_a_control_that_looks_at_answers_is_refused(root: Path) -> None:
    withhold(root, "PH-0008")
    with pytest.raises(InputError, match="control other_patient"):
        plan(sweep_spec(root, *READERS, control=["none", "other_patient"]))


def test_nothing_is_said_where_nothing_is_withheld(capsys: pytest.CaptureFixture[str]) -> None:
    show_withheld(0)
    assert capsys.readouterr().out == ""
