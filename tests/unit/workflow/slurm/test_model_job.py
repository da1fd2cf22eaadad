"""A model job that ends with an error records its failure and the reason."""

import errno
from pathlib import Path

import pytest

from cardiolens.base import disk
from cardiolens.base.errors import RunError
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.places import run_of
from cardiolens.workflow.slurm.model_job import run_model
from cardiolens.workflow.slurm.model_record import ModelRecord, read_model_record


def record_of(spec: SweepSpec) -> ModelRecord:
    return read_model_record(run_of(spec).model_records, "uniform")


def test_an_error_that_nobody_foresaw_fails_the_start_that_was_under_way(
    small_sweep: SweepSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    excluded, written = run_of(small_sweep).node_exclusions("uniform"), disk.write_text

    def write_text(path: Path, text: str) -> None:
        if path == excluded:
            raise IsADirectoryError(errno.EISDIR, "Is a directory", str(path))
        written(path, text)

    monkeypatch.setattr(disk, "write_text", write_text)
    with pytest.raises(IsADirectoryError):
        run_model(run_of(small_sweep), small_sweep, "uniform", 1)
    found = record_of(small_sweep)
    assert found.state == "failed"
    assert found.reason.startswith(
        "IsADirectoryError (Is a directory) at cardiolens/workflow/slurm/attempt.py:"
    )
    (attempt,) = found.attempts
    assert (attempt.outcome, attempt.reason) == ("failed", found.reason)
    assert attempt.ended is not None


def test_its_words_are_not_repeated(small_sweep: SweepSpec, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_NODELIST", "n1")
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "Doe, Jane")
    with pytest.raises(ValueError, match="Doe"):
        run_model(run_of(small_sweep), small_sweep, "uniform", 1)
    found = record_of(small_sweep)
    assert found.state == "failed"
    assert found.reason.startswith("ValueError at cardiolens/workflow/slurm/attempt.py:")
    assert "Doe" not in found.model_dump_json()
    assert "\n" not in found.reason


def test_a_store_that_cannot_be_written_is_the_reason(small_sweep: SweepSpec) -> None:
    requests = run_of(small_sweep).requests("uniform")
    requests.parent.mkdir(parents=True)
    Path(requests).write_text("a file where a folder should be")
    with pytest.raises(RunError):
        run_model(run_of(small_sweep), small_sweep, "uniform", 1)
    assert record_of(small_sweep).state == "failed"
    assert "cannot be written" in record_of(small_sweep).reason
