"""Submitting and status without SLURM: plans, records of a model's job, models and files that are missing."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from small_cohort import answer

from cardiolens.base.errors import InputError, RunError
from cardiolens.base.phases import phase
from cardiolens.config.sweep import SweepSpec
from cardiolens.inference.plan.missing import WORK, Missing
from cardiolens.inference.plan.plan import plan
from cardiolens.storage import documents
from cardiolens.storage.places import Run, run_of
from cardiolens.study.cohort import read_cohort, write_cohort
from cardiolens.study.manifest import read_study
from cardiolens.workflow.slurm import commands
from cardiolens.workflow.slurm import job_steps as work
from cardiolens.workflow.slurm.commands import Alive
from cardiolens.workflow.slurm.job_steps import run_model
from cardiolens.workflow.slurm.records import Attempt, ModelRecord, begin, end, give_up, read_model_record
from cardiolens.workflow.slurm.run_status import rate_of, status, status_of
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


def test_a_failure_that_would_come_again_is_kept_and_said(
    sweep_of: Callable[..., SweepSpec],
    prepared_phantom: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The prepared study lies beside a folder that is not a study."""
    prepared, studies = prepared_phantom / "data" / "studies", tmp_path / "studies"
    (studies / "EMPTY").mkdir(parents=True)
    (studies / "PH-NORMAL").symlink_to(prepared / "PH-NORMAL")
    words = ["model=[uniform]", "subtask=[C01]", "budget=[4]", "cluster=slurm", "mode=plan"]
    spec = sweep_of(*words, f"dataset.studies={studies}", f"++dataset.link_roots=[{prepared}]")
    with pytest.raises(InputError) as caught:
        read_study(studies / "EMPTY")
    cohort = read_cohort(spec.store)
    write_cohort(spec.store, cohort.model_copy(update={"failed": {"EMPTY": str(caught.value)}}))
    assert submit(spec) == 0
    said = capsys.readouterr().out
    assert "prepare.sbatch" not in said
    assert f"not prepared: EMPTY: {caught.value}" in said
    assert "python -m cardiolens.prepare ... tries again" in said


@pytest.mark.parametrize(
    ("alive", "queued"),
    [
        ({}, {"oracle": [], "uniform": [], "score": ["11", "12"]}),
        ({"prepare": "7"}, {"oracle": ["7"], "uniform": ["7"], "score": ["7", "11", "12"]}),
        (
            {"oracle": "7", "uniform": "8"},
            {"score": ["7", "8"]},
        ),  # submit was killed before it queued the last
        ({"oracle": "7", "score": "9"}, {"uniform": [], "score": ["7", "9", "11"]}),
        ({"oracle": "7", "uniform": "8", "score": "9"}, {}),
    ],
)
def test_what_is_not_in_the_queue_is_queued_behind_what_is(
    sweep_of: Callable[..., SweepSpec],
    prepared_phantom: Path,
    monkeypatch: pytest.MonkeyPatch,
    alive: dict[str, str],
    queued: dict[str, list[str]],
) -> None:
    told: dict[str, list[str]] = {}

    def queue(script: Path, after: list[str], *, on_success: bool) -> str:
        told[script.stem] = after
        return str(10 + len(told))

    jobs = [Alive(id, name, "RUNNING", "n1") for name, id in alive.items()]
    monkeypatch.setattr(commands, "alive", lambda _: jobs)
    monkeypatch.setattr(commands, "submit", queue)
    monkeypatch.setattr(commands, "execute", lambda *_: "main|infinite\n")
    assert submit(sweep_of("model=[oracle,uniform]", "subtask=[C01]", "budget=[4]", "cluster=slurm")) == 0
    assert told == queued


def test_a_page_of_answers_that_were_corrected_since_is_made_anew(
    sweep_of: Callable[..., SweepSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    monkeypatch.setattr(commands, "alive", lambda _: [])
    monkeypatch.setattr(commands, "submit", lambda script, *_, **__: told.append(script.stem) or "1")
    monkeypatch.setattr(commands, "execute", lambda *_: "main|infinite\n")
    spec = sweep_of("model=[uniform]", "subtask=[C01]", "budget=[4]", "cluster=slurm")
    answer(plan(spec))
    run_of(spec).page.write_text("of these answers")
    assert (submit(spec), told) == (0, [])
    path = spec.dataset.questions
    lines = path.read_text().splitlines()
    corrected = [json.loads(line) for line in lines if '"C01"' in line]
    for question in corrected:
        question["answer"] = ["B"] if question["answer"] == ["A"] else ["A"]
    path.write_text("".join(f"{json.dumps(question)}\n" for question in corrected))
    assert (submit(spec), told) == (0, ["score"])


def test_a_model_with_the_name_of_another_job_is_refused(
    sweep_of: Callable[..., SweepSpec], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "conf" / "model").mkdir(parents=True)
    (tmp_path / "conf" / "model" / "score.yaml").write_text("score: {engine: uniform}\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="model score: a job of each run has this name"):
        submit(sweep_of("model=[oracle,score]", "subtask=[C01]", "budget=[4]", "cluster=slurm", "mode=plan"))


NOW = datetime(2026, 1, 1, tzinfo=UTC)


def start(job: str, rows: int) -> Attempt:
    return Attempt(job=job, nodes="n1", started=NOW, rows_before=rows)


def ended(run: Run, rows: int, outcome: str) -> None:
    end(run, "m", rows=rows, outcome=outcome, reason="", streamed=None)


def test_a_start_that_ended_unheard_is_closed_by_the_next(tmp_path: Path) -> None:
    run = Run(tmp_path)
    begin(run, "m", start("7", 10))
    begin(run, "m", start("7", 25))
    ended(run, 40, "done")
    record = read_model_record(run, "m")
    assert record.state == "done"
    assert [(one.outcome, one.added) for one in record.attempts] == [("lost", 15), ("done", 15)]
    assert (record.streamed.counters["ok"], record.restarts) == (30, 1)


def test_a_job_that_was_killed_twice_without_new_rows_is_given_up(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for rows in (10, 25, 25):  # a start that added rows, and one that added none
        begin(run, "m", start("7", rows))
    with pytest.raises(RunError, match="added no rows: no end recorded"):
        begin(run, "m", start("7", 25))
    outcomes = [one.outcome for one in read_model_record(run, "m").attempts]
    assert outcomes == ["lost"] * 3, "no further start was made"


def test_a_job_that_was_stopped_twice_without_new_rows_is_not_started_again(tmp_path: Path) -> None:
    run = Run(tmp_path)
    begin(run, "m", start("7", 0))
    ended(run, 0, "stopped")
    begin(run, "m", start("7", 0))
    with pytest.raises(RunError, match="added no rows"):
        ended(run, 0, "stopped")


def test_submitting_again_counts_anew(tmp_path: Path) -> None:
    run = Run(tmp_path)
    for job in ("7", "8"):
        begin(run, "m", start(job, 0))
        ended(run, 0, "stopped")


def missing(unique: int, done: int, exhausted: int = 0) -> Missing:
    return Missing(pa.Table.from_pylist([], schema=WORK), unique, done, exhausted)


@pytest.mark.parametrize(
    ("left", "alive", "record", "state"),
    [
        (missing(9, 9), [], ModelRecord(model="m"), "done"),
        (missing(9, 8, 1), [], ModelRecord(model="m"), "done"),
        (missing(9, 0), [Alive("7", "m", "PENDING", "(Priority)")], ModelRecord(model="m"), "queued"),
        (missing(9, 0), [Alive("7", "m", "RUNNING", "n1")], ModelRecord(model="m"), "running"),
        (missing(9, 0), [], ModelRecord(model="m", state="failed", reason="why"), "failed"),
        (missing(9, 0), [], ModelRecord(model="m"), "not running"),
    ],
)
def test_how_a_model_stands(left: Missing, alive: list[Alive], record: ModelRecord, state: str) -> None:
    assert status_of(record, left, alive, rate=1.0).state == state


def test_time_left_follows_the_rate_of_this_start() -> None:
    written = [NOW - timedelta(seconds=second) for second in range(0, 2000, 2)]
    rate = rate_of(written, NOW, NOW - timedelta(seconds=100))
    assert rate == pytest.approx(0.51)
    running = status_of(ModelRecord(model="m"), missing(151, 100), [Alive("7", "m", "RUNNING", "n1")], rate)
    assert running.seconds_left == pytest.approx(100)


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
