"""Real vLLM on CPU in a job, and where the seconds go from `submit` to the first completion."""

from datetime import datetime

import pytest

from tests.slurm.conftest import Site

pytestmark = [pytest.mark.slurm, pytest.mark.long]


def test_the_embedded_model_runs_in_a_job(site: Site) -> None:
    site.submit(
        "model=[tiny]",
        "model.tiny.engine_options.kv_cache_memory_bytes=536870912",
        "cluster.sbatch=[--cpus-per-task=4]",
    )
    site.lab.wait_for_end(600)
    record = site.group("tiny")
    assert record["state"] == "done", site.printed()
    assert site.lab.ended(site.jobs["score"]) == "COMPLETED"
    assert site.lab.folders() == []
    (attempt,) = record["attempts"]
    shown = site.lab.on_login("scontrol", "--oneliner", "show", "job", site.jobs["tiny"])
    said = dict(word.split("=", 1) for word in shown.split() if "=" in word)
    first = min(site.completions("tiny")["written_at"].to_pylist())
    moments = [datetime.fromisoformat(f"{said[name]}+00:00") for name in ("SubmitTime", "StartTime")]
    started = datetime.fromisoformat(attempt["started"].replace("Z", "+00:00"))
    engine = attempt["counters"]["load_ms"] / 1000
    spans = {
        "SLURM": (moments[1] - moments[0]).total_seconds(),
        "imports and plan": (started - moments[1]).total_seconds(),
        "Ray and the first answers": (first - started).total_seconds() - engine,
        "engine": engine,
    }
    assert all(seconds >= -2 for seconds in spans.values()), spans
    print({name: round(seconds, 1) for name, seconds in spans.items()})
