"""Submitting and status without SLURM: the plan, models that are not planned, files that are missing."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.base.phases import phase
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import documents
from cardiolens.storage.places import Run, run_of
from cardiolens.study.cohort import read_cohort, write_cohort
from cardiolens.study.manifest import read_study
from cardiolens.workflow.slurm.records import give_up
from cardiolens.workflow.slurm.run_status import status
from cardiolens.workflow.slurm.submission import submit
from cardiolens.workflow.steps.conclude import closing_progress


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    folder = tmp_path / "weights"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.fixture
def run(sweep_of: Callable[..., SweepSpec], weights: Path, tmp_path: Path, monkeypatch) -> Run:
    """A sweep of a reader, and of an HTTP model whose processor is a folder."""
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "gone.yaml").write_text(
        f"gone:\n  engine: http\n  revision: '1'\n  source: {weights}\n"
        "  http: {base_url: http://127.0.0.1:9/v1, api_model: gone}\n"
    )
    monkeypatch.chdir(tmp_path)
    spec = sweep_of("model=[uniform,gone]", "subtask=[C01]", "budget=[4]")
    documents.write_configuration(run_of(spec), spec)
    return run_of(spec)


def test_what_is_not_planned_is_not_done(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(run) == 1
    assert capsys.readouterr().out.count("not planned") == 2


def test_what_a_run_does_after_its_last_reply_is_shown(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with closing_progress(run):
        for _ in phase("judging", "models", ["uniform", "gone"]):
            status(run)
    first, *_ = [line for line in capsys.readouterr().out.splitlines() if line.startswith("judging")]
    assert first.startswith("judging: 0 of 2 models (written 0:00:")
    status(run)
    assert "judging" not in capsys.readouterr().out


def test_a_model_whose_files_are_gone_is_failed_and_the_others_are_shown(
    run: Run, weights: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan(documents.read_configuration(run), {"uniform"})
    (weights / "config.json").unlink()
    give_up(run, "gone", "its files are gone")
    assert status(run) == 1
    said = capsys.readouterr().out
    assert "0 / 1" in said
    assert "its files are gone" in said
    run.requests("gone").mkdir()  # planned before its files were removed
    assert status(run) == 1
    assert "config.json" in capsys.readouterr().out


Sweep = Callable[..., SweepSpec]


@pytest.fixture
def studies(prepared_phantom: Path, tmp_path: Path) -> Path:
    """The prepared study, and a folder that is not a study."""
    folder = tmp_path / "studies"
    (folder / "EMPTY").mkdir(parents=True)
    (folder / "PH-NORMAL").symlink_to(prepared_phantom / "data" / "studies" / "PH-NORMAL")
    return folder


def planned(sweep_of: Sweep, studies: Path) -> SweepSpec:
    words = ["model=[uniform]", "subtask=[C01]", "budget=[4]", "cluster=slurm", "mode=plan"]
    links = [
        f"++dataset.link_roots=[{(studies / 'PH-NORMAL').resolve().parent}]",
    ]
    return sweep_of(*words, f"dataset.studies={studies}", *links)


def test_a_failure_that_nobody_has_seen_is_prepared_first(
    sweep_of: Sweep, studies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit(planned(sweep_of, studies)) == 0
    assert "prepare.sbatch" in capsys.readouterr().out


def test_a_failure_that_would_come_again_is_kept_and_said(
    sweep_of: Sweep, studies: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = planned(sweep_of, studies)
    with pytest.raises(InputError) as caught:
        read_study(studies / "EMPTY")
    cohort = read_cohort(spec.store)
    write_cohort(spec.store, cohort.model_copy(update={"failed": {"EMPTY": str(caught.value)}}))
    assert submit(spec) == 0
    said = capsys.readouterr().out
    assert "prepare.sbatch" not in said
    assert f"not prepared: EMPTY: {caught.value}" in said
    assert "python -m cardiolens.prepare ... tries again" in said
