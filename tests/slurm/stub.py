"""SLURM's commands of a cluster of one node, enough for one submission: `python stub.py COMMAND WORDS...`.

Jobs run one behind the other as plain processes. The folder that SLURM_STUB names holds a file for each job
(its comment while it waits or runs, then its exit code) and its output.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

STATE = Path(os.environ["SLURM_STUB"])


def sbatch(*words: str) -> None:
    """Queue a script, or only test it."""
    if "--test-only" in words:
        return
    script = Path(words[-1])
    options = dict(re.findall(r"^#SBATCH --([a-z-]+)(?:=(.*))?$", script.read_text(), re.MULTILINE))
    job = str(1 + len(list(STATE.glob("*.job"))))
    (STATE / f"{job}.job").write_text(f"{options['job-name']}|{options['comment']}")
    before = re.findall(r"\d+", next((word for word in words if word.startswith("--dependency")), ""))
    subprocess.Popen([sys.executable, __file__, "run", job, str(script), *before], start_new_session=True)
    print(job)


def run(job: str, script: str, *before: str) -> None:
    """Wait for other jobs, then run a script as the node would."""
    while not all((STATE / f"{other}.code").exists() for other in before):
        time.sleep(0.1)
    text = Path(script).read_text()
    folder = re.search(r"--chdir='?([^'\n]+)", text)
    node = {"SLURM_JOB_ID": job, "SLURM_CPUS_PER_TASK": "2", "SLURM_JOB_NODELIST": "n1"}
    node |= {"SLURM_JOB_PARTITION": "main", "SLURMD_NODENAME": "n1"}
    with (STATE / f"{job}.out").open("w") as printed:
        done = subprocess.run(
            ["bash", script],
            cwd=folder and folder[1],
            env={**os.environ, **node},
            stdout=printed,
            stderr=subprocess.STDOUT,
            check=False,
        )
    (STATE / f"{job}.code").write_text(str(done.returncode))


def squeue(*words: str) -> None:
    """List jobs that have not ended, in the format that `submit` asks for."""
    for path in STATE.glob("*.job"):
        if not path.with_suffix(".code").exists():
            name, comment = path.read_text().split("|", 1)
            print(path.stem if "--format=%A" in words else f"{path.stem}|{name}|RUNNING|n1|{comment}")


def sinfo(*words: str) -> None:
    """One partition."""
    print("main|1-00:00:00")


if __name__ == "__main__":
    {"sbatch": sbatch, "run": run, "squeue": squeue, "sinfo": sinfo}[sys.argv[1]](*sys.argv[2:])
