"""Output and plan of `submit` before anything is queued, without SLURM."""

from collections.abc import Callable
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.sweep import SweepSpec
from cardiolens.study.cohort import read_cohort, write_cohort
from cardiolens.study.manifest import read_study
from cardiolens.workflow.slurm.submission import submit

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
    assert cohort is not None
    write_cohort(spec.store, cohort.model_copy(update={"failed": {"EMPTY": str(caught.value)}}))
    assert submit(spec) == 0
    said = capsys.readouterr().out
    assert "prepare.sbatch" not in said
    assert f"not prepared: EMPTY: {caught.value}" in said
    assert "python -m cardiolens.prepare ... tries again" in said
