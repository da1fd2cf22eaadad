"""From `submit` to the page on a real SLURM cluster, and what is refused before anything waits in a queue."""

import pytest
from pandas.testing import assert_frame_equal

from cardiolens.storage import schemas, tables
from tests.slurm.conftest import SUBMITTED, Site

pytestmark = [pytest.mark.slurm, pytest.mark.full]
MODELS = ("right", "guess", "both")
JUDGED = ("verdicts", schemas.VERDICTS), ("scores", schemas.SCORES)


def test_jobs_end_in_the_page_of_a_local_sweep(submitted: Site) -> None:
    assert {job: submitted.lab.ended(id) for job, id in submitted.jobs.items()} == dict.fromkeys(
        ("prepare", *MODELS, "score"), "COMPLETED"
    ), submitted.printed()
    nodes = {model: set(submitted.completions(model)["node"].to_pylist()) for model in ("right", "guess")}
    assert nodes["right"] != nodes["guess"]
    assert {len(found) for found in nodes.values()} == {1}
    assert (submitted.run / "index.html").exists()
    without_gpus = ("model.both.weight_gib=null", "model.both.max_num_seqs=64")
    local = submitted.swept_here(SUBMITTED[0], *without_gpus)
    assert_frame_equal(submitted.scores().to_pandas(), local.scores().to_pandas(), check_exact=True)
    assert [submitted.said(model) for model in MODELS] == [local.said(model) for model in MODELS]


def test_two_models_run_on_two_nodes_at_once_and_are_judged_as_from_the_completions(submitted: Site) -> None:
    records = [submitted.group(model) for model in ("right", "guess")]
    first, second = (record["attempts"][-1] for record in records)
    assert first["nodes"] != second["nodes"]
    assert max(first["started"], second["started"]) < min(first["ended"], second["ended"]), "one by one"
    in_jobs = [tables.read(submitted.run / name, schema) for name, schema in JUDGED]
    submitted.verb("judge", f"run={submitted.run}")  # by one process, from the completions
    in_one = [tables.read(submitted.run / name, schema) for name, schema in JUDGED]
    for of_jobs, of_one in zip(in_jobs, in_one, strict=True):
        alike = repr(of_jobs.to_pylist()) == repr(of_one.to_pylist())
        assert alike


def test_a_model_over_two_nodes_works_on_both_and_goes_on_after_preemption(submitted: Site) -> None:
    record = submitted.group("both")
    assert [attempt["outcome"] for attempt in record["attempts"]] == ["stopped", "done"], submitted.printed()
    assert set(submitted.completions("both")["node"].to_pylist()) == {"n1", "n2"}
    assert submitted.asked_twice("both") == 0


def test_nothing_of_a_job_survives_it(submitted: Site) -> None:
    assert submitted.lab.processes() == []
    assert submitted.lab.folders() == []


def test_submitting_what_is_done_submits_nothing(submitted: Site) -> None:
    before = submitted.jobs
    assert "nothing is missing" in submitted.submit(*SUBMITTED)
    assert submitted.jobs == before
    status = submitted.verb("status", f"run={submitted.run}")
    assert status.count("done") >= 3


def test_a_plan_prints_every_script_and_submits_nothing(site: Site) -> None:
    printed = site.submit("model=[large,right]", "cluster.gpus=2", "mode=plan")
    assert printed.count("#!/usr/bin/env bash") == 3
    for words in ("--gpus-per-node=2", "GPU hours", "large", "step=score"):
        assert words in printed
    assert not (site.run / "slurm").exists()
    assert site.lab.queue() == {}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["cluster.partition=gpu"], 2, "cluster.partition=gpu: no such partition; choose from main, high"),
        (["cluster.gpus=8", "model=[wide]"], 1, "sbatch refused"),
        (["cluster.sbatch=[--cpus-per-task=5]"], 1, "sbatch refused"),
        (["cluster.sbatch=[--mem=17G]"], 1, "sbatch refused"),
        (["cluster.time='99-00:00:00'"], 2, "a job of 99-00:00:00 is longer than partition main"),
        (["cluster.sbatch=['--qos=none-such','--no-such-option']"], 1, "unrecognized option"),
    ],
)
def test_what_could_never_run_is_refused_at_once(site: Site, words: list[str], code: int, said: str) -> None:
    assert said in site.submit("model=[right]", *words, expect=code)
    assert site.lab.queue() == {}


def test_another_cluster_than_slurm_takes_no_jobs(site: Site) -> None:
    assert "add cluster=slurm" in site.verb("submit", "model=[right]", expect=2)


def test_a_run_folder_that_cannot_be_written_is_said(site: Site) -> None:
    (site.root / "outputs").write_text("a file where a folder should be")
    assert "cannot be written" in site.submit("model=[right]", expect=1)
    assert site.lab.queue() == {}


def test_submitting_again_while_jobs_wait_submits_nothing(submitted: Site) -> None:
    again = (submitted.root / "again.txt").read_text()
    assert again.count("alive: job") == 5
    assert "submitted: job" not in again
    assert "python -m cardiolens.status" in again
