"""Batch scripts without a cluster: golden files, shell syntax, shellcheck, and the jobs of a placement."""

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.cluster import SlurmSpec
from cardiolens.config.compose import read_spec
from cardiolens.inference.placement.placement import Deployment
from cardiolens.storage.places import Run
from cardiolens.workflow.slurm.commands import seconds_of
from cardiolens.workflow.slurm.jobs import Job, jobs_of, script_of

GOLDEN = Path(__file__).parent / "golden"
RUN = Run(Path("outputs/landscape-0123abcd"))
SITES = {
    "slurm": ["cluster=slurm"],
    "slurm_preemptible": ["cluster=slurm_preemptible", "cluster.partition=spare"],
    "everything": [
        "cluster=slurm",
        "cluster.partition=[gpu,cpu]",
        "cluster.gpu_request='--gres=gpu:a100:{}'",
        "cluster.scratch=/scratch/local",
        "cluster.setup=['module load cuda/13','export HF_HOME=/shared/hf']",
        "cluster.python='apptainer exec --nv image.sif python'",
        "cluster.sbatch=['--account=mri','--mem=200G','--constraint=a100|h100','--exclude=n[03,07]']",
    ],
}
JOBS = {
    "prepare": Job("prepare"),
    "model": Job("model", "tiny", gpus=1),
    "model_nodes": Job("model", "kimi", nodes=2, gpus=8),
    "score": Job("score"),
}


@cache
def cluster_of(site: str) -> SlurmSpec:
    cluster = read_spec(SITES[site]).cluster
    assert isinstance(cluster, SlurmSpec)
    return cluster


def script(site: str, job: str) -> str:
    cluster = cluster_of(site)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Path, "cwd", lambda: Path("/home/reader/my work"))
        return script_of(JOBS[job], RUN, cluster.model_copy(update={"python": cluster.python or "python"}))


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("site", SITES)
def test_scripts_are_as_kept(site: str, job: str) -> None:
    kept = GOLDEN / f"{site}.{job}.sbatch"
    made = "\n".join(
        line for line in script(site, job).splitlines() if not line.startswith("#SBATCH --comment=")
    )
    assert made + "\n" == kept.read_text(), f"write it anew after looking: {kept.name}"


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize("site", SITES)
def test_scripts_are_sound_shell(site: str, job: str, tmp_path: Path) -> None:
    path = tmp_path / "job.sbatch"
    path.write_text(script(site, job))
    subprocess.run(["bash", "-n", str(path)], check=True)
    shellcheck = shutil.which("shellcheck")
    if shellcheck is None:
        pytest.skip("shellcheck is not installed")
    found = subprocess.run([shellcheck, str(path)], capture_output=True, text=True, check=False)
    assert not found.returncode, found.stdout


def test_the_example_is_sound_shell() -> None:
    path = Path(__file__).resolve().parents[4] / "slurm" / "example.sbatch"
    subprocess.run(["bash", "-n", str(path)], check=True)


def deployment(model: str, *hosts: tuple[str, ...], tensor: int = 1) -> Deployment:
    needs = "gpu" if any(hosts) else "processor"
    return Deployment(model, tensor, max(1, *map(len, hosts)), hosts, 0.9, "", 0.0, needs)


def test_each_model_is_a_job_with_what_its_engines_need_on_a_node() -> None:
    deployments = [
        deployment("a", ("n1",), ("n1",), tensor=2),
        deployment("c", ("n1", "n2"), tensor=8),
        deployment("d", ("n1",), ("n1",), ("n2",)),
        deployment("e", ()),
        deployment("m", *[("n1",)] * 8),  # vLLM asks for two processors and one for each GPU of an engine
    ]
    jobs = jobs_of(deployments, prepare=True)
    assert [tuple(job) for job in jobs] == [
        ("prepare", "", 1, 0, 8),
        ("model", "a", 1, 4, 10),
        ("model", "c", 2, 8, 12),
        ("model", "d", 2, 2, 8),
        ("model", "e", 1, 0, 8),
        ("model", "m", 1, 8, 26),
        ("score", "", 1, 0, 8),
    ]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [("1:30", 90), ("12:00:00", 43_200), ("1-00:00:30", 86_430)],
)
def test_times_are_read_as_slurm_writes_them(written: str, seconds: int) -> None:
    assert seconds_of(written) == seconds
    assert seconds_of("infinite") == seconds_of("n/a") == float("inf")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("cluster.scratch=relative", "absolute path"),
        ("cluster.time=43200", "in quotes"),
        ("cluster.grace_seconds=120", "grace_seconds: Input should be less than 120"),
        ("cluster.partition='gpu # x'", "cluster"),
        ("cluster.gpu_request=--gres=gpu:4", "gpu_request"),
    ],
)
def test_what_a_site_cannot_be_is_refused(word: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_spec(["cluster=slurm", word])


def test_a_percent_sign_of_a_path_is_no_pattern_of_slurm() -> None:
    made = script_of(JOBS["score"], Run(Path("outputs/50%u")), cluster_of("slurm"))
    assert "\n#SBATCH --output=outputs/50%%u/slurm/%x-%j.out\n" in made


@pytest.mark.parametrize("character", ["\n", "\r", "\x0b", "\x1b", "\x00", "\u2028", "\x85"])
@pytest.mark.parametrize("place", ["run", "workdir", "python"])
def test_what_opens_a_line_of_its_own_is_in_no_script(
    place: str, character: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"a{character}#SBATCH --uid=0"
    here = Path("/home") / name if place == "workdir" else Path("/home/reader")
    monkeypatch.setattr(Path, "cwd", lambda: here)
    cluster = cluster_of(next(iter(SITES)))
    run = Run(Path("outputs") / name) if place == "run" else RUN
    python = name if place == "python" else None
    with pytest.raises(InputError, match="which holds a line break or another character"):
        script_of(next(iter(JOBS.values())), run, cluster.model_copy(update={"python": python}))


@pytest.mark.parametrize("option", ["outputs", "store", "cluster.scratch", "cluster.python"])
def test_a_path_of_two_lines_is_refused_before_anything_is_planned(option: str) -> None:
    with pytest.raises(InputError, match=r"control character|pattern"):
        read_spec([*SITES[next(iter(SITES))], f"++{option}='/a\n#SBATCH --uid=0'"])
