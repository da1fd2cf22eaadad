"""What clusters do to jobs: shared nodes, preemption, time limits, lost nodes, scancel; and vLLM in a job."""

import json
import os
import shutil
from collections import Counter

import pytest

from tests.slurm.conftest import Site

pytestmark = [pytest.mark.slurm, pytest.mark.long]

IN_FLIGHT = 3 * 16  # of a reader with max_num_seqs 2: half as many wait; studies at once do not add to it

NOBODY = """
{name}:
  engine: http
  revision: '1'
  http: {{base_url: http://127.0.0.1:9/v1, api_model: {name}}}
  {more}
"""


def restarts(site: Site, model: str) -> list[str]:
    return [attempt["outcome"] for attempt in site.group(model)["attempts"]]


def assert_complete(site: Site, model: str, twice: int) -> None:
    """Every request has its completion, and no more than so many were asked twice."""
    assert site.group(model)["state"] == "done", site.printed()
    manifest = json.loads((site.run / "manifest.json").read_text())
    assert manifest["requests"]["ok"] == manifest["requests"]["unique"]
    assert site.asked_twice(model) <= twice
    assert site.lab.ended(site.jobs["score"]) == "COMPLETED"
    assert site.lab.processes() == []
    assert site.lab.folders() == []


def test_two_jobs_on_one_node_have_their_own_gpus_and_ray(site: Site) -> None:
    words = ["model=[large,larger]", "cluster.gpus=1", "cluster.sbatch=[--exclude=n2]", "budget=[8,16]"]
    site.submit(*words)
    running = site.lab.wait(
        lambda: [job for job in site.jobs.values() if site.lab.queue().get(job, ("",))[0] == "RUNNING"][1:]
    )
    assert running, "both at once"
    site.lab.wait_for_end()
    seats = [site.group(model)["attempts"][0]["seats"] for model in ("large", "larger")]
    assert [len(found) for found in seats] == [1, 1], site.printed()
    nodes, gpus = zip(*(found[0].split(":") for found in seats), strict=True)
    assert len(set(nodes)) == 2, "a Ray node of a cluster of its own each"
    assert sorted(gpus) == ["0", "1"]
    for model in ("large", "larger"):
        assert set(site.completions(model)["node"].to_pylist()) == {"n1"}
        assert_complete(site, model, 0)


def test_a_preempted_job_goes_on(site: Site) -> None:
    site.submit("model=[slow]", "cluster.sbatch=[--exclude=n2]")
    site.lab.wait(lambda: site.rows("slow"))
    high = site.preempt("n1")
    site.lab.wait_for_end()
    assert site.lab.ended(high) == "COMPLETED"
    assert restarts(site, "slow") == ["stopped", "done"], site.printed()
    assert_complete(site, "slow", 0)


def test_a_job_goes_on_after_its_time_limit(site: Site) -> None:
    site.submit(
        "model=[slow]",
        "model.slow.options.seconds=2",
        "budget=[8,16,32]",
        "cluster.time=00:03:00",
        # SLURM sends the signal a minute or two after the start
        "cluster.sbatch=[--signal=B:TERM@60,--cpus-per-task=4]",
    )
    site.lab.wait_for_end(600)
    assert restarts(site, "slow")[0] == "stopped", site.printed()
    assert restarts(site, "slow")[-1] == "done"
    assert_complete(site, "slow", 0)


def test_a_lost_node_costs_what_was_not_written(site: Site) -> None:
    site.submit("model=[slow]", "stream.flush_seconds=2")
    site.lab.wait(lambda: site.rows("slow") > 8)
    (node,) = set(site.completions("slow")["node"].to_pylist())
    site.lab.script("fault_node.sh", node, "kill")
    shutil.rmtree(site.lab.folder / node / "ray", ignore_errors=True)  # a node's own disk, after a boot
    (site.lab.folder / node / "ray").mkdir()
    site.lab.script("fault_node.sh", node, "return")
    site.lab.wait_for_end(400)
    assert restarts(site, "slow") == ["lost", "done"], site.printed()
    assert_complete(site, "slow", IN_FLIGHT)


def test_after_scancel_only_what_is_missing_runs(site: Site) -> None:
    words = [
        "model=[slow,guess]",
        "cluster.sbatch=[--cpus-per-task=4]",
        "budget=[8,16]",
        "stream.flush_seconds=2",
    ]
    site.submit(*words)
    site.lab.wait(lambda: site.rows("slow"))
    site.lab.on_login("scancel", site.jobs["slow"])
    site.lab.wait_for_end()
    assert site.lab.processes() == []
    assert site.group("guess")["state"] == "done"
    assert site.lab.ended(site.jobs["score"]) == "FAILED", "its exit code tells that requests are missing"
    assert (site.run / "index.html").exists()
    kept = site.rows("slow")
    printed = site.submit(*words)
    assert "model slow\n" in printed
    assert "guess" not in printed
    site.lab.wait_for_end()
    assert site.rows("slow") > kept
    assert site.asked_twice("slow") <= IN_FLIGHT
    assert site.asked_twice("guess") == 0
    assert_complete(site, "slow", IN_FLIGHT)


def test_a_model_that_can_never_run_fails_with_the_reason_and_the_rest_is_shown(site: Site) -> None:
    """Its files are there when it is submitted, and gone or broken when its job starts."""
    source = site.root / "weights"
    source.mkdir()
    (source / "config.json").write_text("{}")
    site.write_model("gone", NOBODY.format(name="gone", more=f"source: {source}"))
    os.unlink(site.root / "store" / "cohort.json")  # so that the plan is made by a job
    site.submit("model=[guess,gone]")
    shutil.rmtree(source)
    site.lab.wait_for_end()
    assert site.group("gone")["state"] == "failed"
    assert "weights" in site.group("gone")["reason"], site.printed()
    assert site.lab.ended(site.jobs["score"]) == "FAILED"
    manifest = json.loads((site.run / "manifest.json").read_text())
    assert "gone" in manifest["failed"]
    assert (site.run / "index.html").exists()
    assert "failed" in site.verb("status", f"run={site.run}", expect=1)


def test_a_model_whose_restart_adds_nothing_is_given_up(site: Site) -> None:
    """Nobody answers behind HTTP."""
    site.write_model("deaf", NOBODY.format(name="deaf", more="long_side: 64"))
    site.submit("model=[guess,deaf]")
    site.lab.wait_for_end()
    record = site.group("deaf")
    assert record["state"] == "failed", site.printed()
    assert Counter(restarts(site, "deaf"))["failed"] == len(record["attempts"]) == 2
    assert "added no rows" in record["reason"]
    assert site.lab.ended(site.jobs["score"]) == "FAILED"
    assert (site.run / "index.html").exists()
    assert site.lab.processes() == []
    assert site.lab.folders() == []


def test_the_tiny_model_runs_in_a_job(site: Site) -> None:
    site.submit(
        "model=[tiny]",
        "model.tiny.engine_options.kv_cache_memory_bytes=536870912",
        "cluster.sbatch=[--cpus-per-task=4]",
    )
    site.lab.wait_for_end(600)
    assert site.group("tiny")["state"] == "done", site.printed()
    assert site.lab.ended(site.jobs["score"]) == "COMPLETED"
    assert site.lab.folders() == []
    assert len(site.group("tiny")["attempts"]) == 1
