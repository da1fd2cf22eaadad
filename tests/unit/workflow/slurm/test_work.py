"""A model job that ends with an error records its failure and the reason."""

from pathlib import Path

import pytest

from cardiolens.base.errors import RunError
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.places import run_of
from cardiolens.workflow.slurm import job_steps as work
from cardiolens.workflow.slurm.job_steps import run_model
from cardiolens.workflow.slurm.records import ModelRecord, read_model_record


def record_of(spec: SweepSpec) -> ModelRecord:
    return read_model_record(run_of(spec), "uniform")


def test_an_error_that_nobody_foresaw_fails_the_start_and_its_words_are_not_repeated(
    small_sweep: SweepSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise ValueError("Doe, Jane")

    monkeypatch.setattr(work, "_answer", failing)
    with pytest.raises(ValueError, match="Doe"):
        run_model(run_of(small_sweep), small_sweep, "uniform", 1)
    found = record_of(small_sweep)
    assert (found.state, found.reason) == ("failed", "ValueError; see the output of the job")
    (attempt,) = found.attempts
    assert (attempt.outcome, attempt.reason) == ("failed", found.reason)
    assert attempt.ended is not None
    assert "Doe" not in found.model_dump_json()


def test_a_store_that_cannot_be_written_is_the_reason(small_sweep: SweepSpec) -> None:
    requests = run_of(small_sweep).requests("uniform")
    requests.parent.mkdir(parents=True)
    Path(requests).write_text("a file where a folder should be")
    with pytest.raises(RunError):
        run_model(run_of(small_sweep), small_sweep, "uniform", 1)
    assert record_of(small_sweep).state == "failed"
    assert "cannot be written" in record_of(small_sweep).reason
