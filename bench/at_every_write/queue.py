"""SLURM's commands as `submit` calls them: a queue in the working folder, whose jobs wait for ever."""

import json
import re
from pathlib import Path

from cardiolens.base import disk
from cardiolens.workflow.slurm import commands

QUEUE = Path("queue.jsonl")
_OPTION = re.compile(r"^#SBATCH --(job-name|comment)=(.*)$", re.MULTILINE)


def wait_in_file() -> None:
    """Have the file stand for SLURM in this process; each change of it is one of the disk."""
    commands.execute = _execute


def _execute(*words: str) -> str:
    """Do what a command does, and return what it prints."""
    jobs = [json.loads(line) for line in QUEUE.read_text().splitlines()] if QUEUE.exists() else []
    match words:
        case ["sinfo", *_]:
            return "main|infinite\n"
        case ["squeue", *_]:
            return "".join(f"{job['id']}|{job['name']}|PENDING|(Priority)|{job['mark']}\n" for job in jobs)
        case ["scancel", *ids]:
            _write([job for job in jobs if job["id"] not in ids])
        case ["sbatch", *options, script] if "--test-only" not in options:
            given = dict(_OPTION.findall(Path(script).read_text()))
            after = [word for word in options if word.startswith("--dependency")]
            job = {
                "id": str(len(jobs) + 1),
                "name": given["job-name"],
                "mark": given["comment"],
                "after": after,
            }
            _write([*jobs, job])
            return f"{job['id']}\n"
    return ""


def _write(jobs: list[dict[str, object]]) -> None:
    disk.write_text(QUEUE, "".join(f"{json.dumps(job)}\n" for job in jobs))
