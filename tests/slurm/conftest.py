"""The lab cluster, and sweeps submitted to it as a person would submit them; see README.md."""

import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.ray.conftest import Place
from tests.ray.processes import printed_by

SCRIPTS = Path(__file__).resolve().parents[3] / "shared" / "slurm"
READERS = {  # name: lines of its configuration
    "right": "engine: oracle",
    "guess": "engine: uniform",
    "slow": "engine: uniform\n  options: {seed: 1, seconds: 1.0}\n  max_num_seqs: 2",
    "large": "engine: uniform\n  options: {seed: 2, seconds: 0.2}\n  max_num_seqs: 2\n  weight_gib: 30",
    "both": "engine: uniform\n  options: {seed: 4, seconds: 1.0}\n  max_num_seqs: 2\n  weight_gib: 30",
    "wide": "engine: uniform\n  weight_gib: 300\n  tensor_parallel: 8",
    "larger": "engine: uniform\n  options: {seed: 3, seconds: 0.2}\n  max_num_seqs: 2\n  weight_gib: 31",
}
SUBMITTED = (  # two models on a node each, then one on both
    "model=[right,guess,both]",
    "cluster.sbatch=[--cpus-per-task=4]",
    "cluster.nodes=2",
    "cluster.gpus=1",
    "stream.flush_seconds=2",
)
WORDS = (
    "name=lab",
    "dataset.phantom.canonical=[PH-NORMAL,PH-ICM-LAD]",
    "dataset.phantom.n_sampled=0",
    "selector=[clinical]",
    "budget=[8]",
    "tracker=none",
    "statistics.resamples=50",
    "statistics.min_n=1",
    "cluster=slurm",
    "cluster.partition=main",
    "cluster.sbatch=[--cpus-per-task=2]",
    "cluster.time=00:20:00",
    "cluster.grace_seconds=3",
    "cluster.gpu_memory_gib=80",
    "cluster.scratch=/tmp/ray",  # local to a node of the lab
)


def missing_piece() -> str | None:
    """Why the lab cannot be started here."""
    if not SCRIPTS.is_dir():
        return "the scripts of the lab cluster are not beside this checkout (../shared/slurm)"
    if os.geteuid():
        return "the lab cluster needs root"
    if shutil.which("slurmctld", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        return "SLURM is not installed (../shared/slurm/slurm_install.sh)"
    return None


@dataclass(frozen=True)
class Lab:
    """A SLURM cluster of two nodes, n1 and n2, each with 4 CPUs and 2 GPUs."""

    folder: Path

    def script(self, name: str, *words: str, cwd: Path | None = None, expect: int = 0) -> str:
        """Run one of the lab's own scripts; what it prints."""
        environment = {"LAB": str(self.folder), "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
        return printed_by([str(SCRIPTS / name), *words], cwd, expect, **environment)

    def on_login(self, *words: str, cwd: Path | None = None, expect: int = 0) -> str:
        return self.script("slurm_exec.sh", *words, cwd=cwd, expect=expect)

    def queue(self) -> dict[str, tuple[str, str]]:
        """State and place of every job that has not ended."""
        lines = self.on_login("squeue", "--noheader", "--array", "--format=%i %T %R").splitlines()
        return {job: (state, where) for job, state, where in (line.split(maxsplit=2) for line in lines)}

    def wait(self, seen: Callable[[], Any], seconds: float = 1500) -> Any:
        """Until a function gives something true."""
        deadline = time.monotonic() + seconds
        while not (found := seen()):
            assert time.monotonic() < deadline, self.queue()
            time.sleep(0.3)
        return found

    def wait_for_end(self, seconds: float = 1500) -> None:
        self.wait(lambda: not self.queue(), seconds)

    def folders(self) -> list[str]:
        """Temporary folders of jobs on nodes."""
        return [str(path) for node in ("n1", "n2") for path in (self.folder / node / "ray").glob("cl*")]

    def processes(self) -> list[str]:
        """Whatever runs of a job, on any node."""
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if b"\0SLURM_JOB_ID=" in b"\0" + (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue
        return found

    def ended(self, job: str) -> str:
        """JobState of a job that SLURM still knows."""
        shown = self.on_login("scontrol", "--oneliner", "show", "job", job)
        return next(word.partition("=")[2] for word in shown.split() if word.startswith("JobState="))


@dataclass(frozen=True)
class Site(Place):
    """A working directory on the cluster's shared disk."""

    lab: Lab

    def words(self, *words: str) -> list[str]:
        where = [
            f"dataset.studies={self.data}/studies",
            f"dataset.questions={self.data}/questions.jsonl",
            f"store={self.root}/store",
            f"outputs={self.root}/outputs",
        ]
        return [*WORDS, *where, *words]

    def verb(self, verb: str, *words: str, expect: int = 0) -> str:
        command = [sys.executable, "-m", f"cardiolens.{verb}", *words]
        return self.lab.on_login(*command, cwd=self.root, expect=expect)

    def submit(self, *words: str, expect: int = 0) -> str:
        printed = self.verb("submit", *self.words(*words), expect=expect)
        jobs = {words[-1]: words[0] for words in map(str.split, re.findall(r"submitted: job (.*)", printed))}
        if jobs:
            (self.root / "submitted.json").write_text(json.dumps(jobs))
        return printed

    def swept_here(self, *words: str) -> "Site":
        """The same sweep by one local command on a copy of the prepared store."""
        other = Site(self.root.with_name(f"{self.root.name}-local"), self.data, self.lab)
        other.root.mkdir()
        shutil.copytree(self.root / "conf", other.root / "conf")
        ignore = shutil.ignore_patterns("completions")
        shutil.copytree(self.root / "store", other.root / "store", ignore=ignore)
        command = [sys.executable, "-m", "cardiolens.sweep", *other.words(*words)]
        printed_by(command, other.root)
        return other

    @property
    def jobs(self) -> dict[str, str]:
        """Ids by model, or by step; of the last submission."""
        return json.loads((self.root / "submitted.json").read_text())

    def group(self, model: str) -> dict[str, Any]:
        return json.loads((self.run / "groups" / f"{model}.json").read_text())

    def rows(self, model: str) -> int:
        """Completions of a model so far."""
        return self.completions(model).num_rows

    def preempt(self, node: str) -> str:
        """Queue an urgent job that needs a whole node; its id."""
        words = ["sbatch", "--parsable", "-p", "high", "-w", node, "-c4", "--wrap=sleep 5"]
        return self.lab.on_login(*words, cwd=self.root).strip()

    def said(self, model: str) -> dict[str, str]:
        """Replies by request."""
        found = self.completions(model)
        return dict(zip(found["request_key"].to_pylist(), found["text"].to_pylist(), strict=True))

    def asked_twice(self, model: str) -> int:
        asked = self.keys(model)
        return len(asked) - len(set(asked))

    def printed(self) -> str:
        return "\n".join(path.read_text() for path in sorted((self.run / "slurm").glob("*.out")))


@pytest.fixture(scope="session")
def lab() -> Iterator[Lab]:
    if (missing := missing_piece()) is not None:
        pytest.skip(missing)
    folder = Path(tempfile.mkdtemp(prefix="lab"))
    cluster = Lab(folder)
    cluster.script("slurm_up.sh")
    yield cluster
    cluster.script("slurm_down.sh")
    shutil.rmtree(folder)


def make_site(lab: Lab, root: Path, data: Path) -> Site:
    """A working directory with the simulated readers of these tests."""
    site = Site(root, data, lab)
    for name, lines in READERS.items():
        site.write_model(name, f"{name}:\n  {lines}\n")
    return site


@pytest.fixture(scope="session")
def submitted(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Site:
    """A sweep that was submitted from nothing, once more while it ran, was preempted, and has ended.

    Preempted was the job over two nodes, by another on one of them.
    """
    root = tmp_path_factory.mktemp("submitted")
    site = make_site(lab, root, root / "data")
    site.submit(*SUBMITTED)
    (root / "again.txt").write_text(site.submit(*SUBMITTED))
    lab.wait(lambda: site.rows("both"))
    site.preempt("n1")
    lab.wait_for_end()
    return site


@pytest.fixture
def site(submitted: Site, tmp_path: Path) -> Iterator[Site]:
    """A working directory whose store is prepared and holds no completions."""
    here = make_site(submitted.lab, tmp_path, submitted.data)
    shutil.copytree(
        submitted.root / "store", tmp_path / "store", ignore=shutil.ignore_patterns("completions")
    )
    yield here
    if here.lab.queue():
        here.lab.on_login("scancel", "--user=root")
        here.lab.wait_for_end()
