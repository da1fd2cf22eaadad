"""`cardiolens.read_run`: what a notebook is given is what the run holds, and importing it is light."""

import subprocess
import sys
from pathlib import Path

import pytest
from page_run import reply_instead, small_spec, write_record
from small_cohort import swept

import cardiolens as cl
from cardiolens.base.errors import InputError
from cardiolens.show.notebook.run import FinishedRun
from cardiolens.storage import schemas, tables

PATIENTS = 2
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def run(root: Path) -> FinishedRun:
    planned, _ = swept(small_spec(root, "read"))
    write_record(planned, reply_instead(planned, "collapse", MARKUP))
    return cl.read_run(planned.run.root)


def test_tables_are_those_on_disk(run: FinishedRun) -> None:
    scores = tables.read(run.folder / "scores", schemas.SCORES)
    assert repr(run.scores.to_pylist()) == repr(scores.to_pylist())  # NaN equals no NaN
    assert run.verdicts.equals(tables.read(run.folder / "verdicts", schemas.VERDICTS))
    assert set(run.completions["request_key"].to_pylist()) == set(run.requests["request_key"].to_pylist())
    assert set(run.verdicts["qa_id"].to_pylist()) <= set(run.questions["qa_id"].to_pylist())
    assert run.models == ("noisy", "collapse")


def test_cases_hold_every_verdict_with_its_reply(run: FinishedRun) -> None:
    cases = list(run.cases())
    assert sum(len(case.answers) for case in cases) == run.verdicts.num_rows
    texts = dict(
        zip(run.completions["request_key"].to_pylist(), run.completions["text"].to_pylist(), strict=True)
    )
    assert all(answer.reply == texts[answer.request_key] for case in cases for answer in case.answers)


def test_a_case_shows_replies_as_text(run: FinishedRun) -> None:
    shown = next(case for case in run.cases() if case.truth)._repr_html_()
    assert "&lt;img" in shown
    assert "<img" not in shown


def test_wrong_names_are_answered_with_the_legal_ones(run: FinishedRun, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such question"):
        run.case("none")
    with pytest.raises(InputError, match="the run has primary"):
        run.figure(metric="primry")
    with pytest.raises(InputError, match="the run has tier"):
        run.figure(scope="tier:9")
    with pytest.raises(InputError, match="no such folder"):
        cl.read_run(tmp_path / "none")
    with pytest.raises(InputError, match="is not the folder of a run"):
        cl.read_run(tmp_path)


def test_a_figure_has_the_scores_of_single_arms(run: FinishedRun) -> None:
    shown = run.figure().to_dict()
    drawn = {row["arm_id"]: row["value"] for row in shown["data"]["values"]}
    wanted = {
        row["arm_id"]: row["value"]
        for row in run.scores.to_pylist()
        if (row["metric"], row["scope"]) == ("primary", "tier:1") and row["value"] == row["value"]
    }
    assert drawn == wanted
    assert drawn


@pytest.mark.parametrize(
    ("statement", "heavy"),
    [
        ("import cardiolens", ("pyarrow", "pydantic", "numpy", "ray", "vllm")),
        (
            "import cardiolens; cardiolens.read_run",
            ("ray", "vllm", "torch", "transformers", "wandb", "altair"),
        ),
    ],
)
def test_importing_is_light(statement: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys; {statement}; print(*(name for name in {heavy} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
