"""One submission from nothing to its page, with a stub of SLURM's commands; `test_submit.py` has the lab."""

import sys
import time
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from tests.ray.processes import printed_by
from tests.slurm.conftest import Lab, Site, make_site

pytestmark = pytest.mark.ray
STUB = Path(__file__).parent / "stub.py"
COMMANDS = ("sbatch", "squeue", "sinfo")
SECONDS = 1500  # for a hang; it takes one minute


class StubLab(Lab):
    """A login node on which SLURM's commands are stubs."""

    def on_login(self, *words: str, cwd: Path | None = None, expect: int = 0) -> str:
        return printed_by(words, cwd, expect)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    commands = tmp_path / "bin"
    commands.mkdir()
    for name in COMMANDS:
        path = commands / name
        path.write_text(f'#!/bin/sh\nexec {sys.executable} {STUB} {name} "$@"\n')
        path.chmod(0o755)
    (tmp_path / "state").mkdir()
    monkeypatch.setenv("SLURM_STUB", str(tmp_path / "state"))
    monkeypatch.setenv("PATH", str(commands), prepend=":")
    return make_site(StubLab(tmp_path), tmp_path / "site", tmp_path / "site" / "data")


def ended(site: Site, jobs: dict[str, Any]) -> dict[str, str]:
    """The exit code of every job, once all have ended."""
    state = site.lab.folder / "state"
    files = {name: state / f"{job}.code" for name, job in jobs.items()}
    deadline = time.monotonic() + SECONDS
    while not all(path.exists() for path in files.values()):
        assert time.monotonic() < deadline, site.printed()
        time.sleep(0.3)
    return {name: path.read_text() for name, path in files.items()}


def test_jobs_end_in_a_page(site: Site) -> None:
    site.submit("model=[right,guess]", "subtask=[C10,L01]", "cluster.sbatch=[--cpus-per-task=4]")
    jobs = site.jobs
    assert set(jobs) == {"prepare", "right", "guess", "score"}
    printed = "\n".join(path.read_text() for path in (site.lab.folder / "state").glob("*.out"))
    assert ended(site, jobs) == dict.fromkeys(jobs, "0"), printed
    assert (site.run / "index.html").exists()
    scores = site.scores()
    overall = scores.filter(
        pc.and_(pc.equal(scores["metric"], "primary"), pc.equal(scores["scope"], "tier:1"))
    )
    assert max(overall["value"].to_pylist()) == 100
    assert "nothing is missing" in site.submit(
        "model=[right,guess]", "subtask=[C10,L01]", "cluster.sbatch=[--cpus-per-task=4]"
    )
