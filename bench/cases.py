r"""MedThinkVQA's form end to end: cases are made, asked, killed, asked on, scored, submitted and checked.

    .venv/bin/python bench/cases.py [cases] [override ...]
    .venv/bin/python bench/cases.py 720 model=[oracle,uniform,tiny] model.tiny.max_num_seqs=16 \
        +model.tiny.max_tokens.twi_self=16 +model.tiny.max_tokens.step=32

Questions are asked directly and as chains (`prompt=[direct,twi_self]`). The driver gets SIGKILL once, when
there are half as many completions as cases; the same command then goes on. No request may have two
completions. Accuracy is that of `jobs/medthinkvqa.py scores`. The submission of each arm whose replies could
all be read is written and checked. An oracle knows the answers; `uniform` sees no image and guesses: 20 %.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from soak import descendants

SWEEP = [
    "+experiment=medthinkvqa",
    "name=form",
    "prompt=[direct,twi_self]",
    "selector=[uniform]",
    "budget=[3]",
    "answer_format=choice",
    "tracker=none",
    "stream.flush_rows=16",
]
READERS = "model=[oracle,uniform]"
CASES = 720
JOB = Path(__file__).parents[1] / "jobs" / "medthinkvqa.py"


def main() -> None:
    from tests.support.cases.example_cases import make_cases

    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    own = sys.argv[2:]
    with tempfile.TemporaryDirectory() as folder:
        root, data = Path(folder), Path(folder) / "cases"
        began = time.monotonic()
        make_cases(data, cases, 1)
        print(f"{cases} cases made in {time.monotonic() - began:.0f} s", flush=True)
        places = [f"dataset.source={data}", f"store={root}/store", f"outputs={root}/outputs"]
        readers = [] if any(word.startswith("model=") for word in own) else [READERS]
        command = [sys.executable, "-m", "cardiolens.sweep", *SWEEP, *readers, *places, *own]
        killed(command, root, cases // 2)
        began = time.monotonic()
        with (root / "printed").open("w") as printed:
            code = subprocess.run(command, stdout=printed, stderr=subprocess.STDOUT, check=False).returncode
        assert code == 0, (root / "printed").read_text()[-4000:]
        print(f"went on to the end in {time.monotonic() - began:.0f} s", flush=True)
        (run,) = (root / "outputs").iterdir()
        tell(run, root, data)


def killed(command: list[str], root: Path, rows: int) -> None:
    """Start a sweep, kill its driver at so many completions, and wait until its workers have ended."""
    began = time.monotonic()
    with (root / "printed").open("w") as printed:
        running = subprocess.Popen(command, stdout=printed, stderr=subprocess.STDOUT)
        while len(keys(root)) < rows:
            assert running.poll() is None, (root / "printed").read_text()[-4000:]
            time.sleep(0.5)
        below = descendants(running.pid)
        running.kill()
        running.wait()
    while any(alive(pid) for pid in below):
        time.sleep(0.5)
    print(
        f"killed after {time.monotonic() - began:.0f} s: {len(keys(root)):,} completions on disk", flush=True
    )


def alive(pid: int) -> bool:
    """Whether a process runs; one that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def keys(root: Path) -> list[tuple[str, str]]:
    """The model and the request of every completion on disk."""
    from cardiolens.storage import schemas, tables

    folder = root / "store" / "completions"
    found = [] if not folder.is_dir() else [path for path in folder.iterdir() if path.is_dir()]
    return [
        (path.name, row["request_key"])
        for path in found
        for row in tables.read(path, schemas.COMPLETIONS, ("request_key",)).to_pylist()
    ]


def tell(run: Path, root: Path, data: Path) -> None:
    """Print counts and accuracy, and what the check of each submission says."""
    manifest = json.loads((run / "manifest.json").read_text())
    twice = sum(number - 1 for number in Counter(keys(root)).values())
    assert not twice, f"{twice} requests have two completions"
    asked = {name: manifest["requests"][name] for name in ("asked", "unique", "executed", "ok")}
    print(f"requests: {asked}; {len(keys(root)):,} completions with those of steps, none twice")
    for row in manifest["stages"]:
        print(
            "  ".join(
                f"{name} {row[name]}" for name in ("model", "stage", "asked", "unique", "executed", "ok")
            )
        )
    names = {arm["arm_id"]: f"{arm['model']} {arm['prompt']}" for arm in manifest["arms"]}
    for line in job("scores", f"run={run}").splitlines()[1:]:
        arm, attribute, _, accuracy, low, high, cases, right, unread = line.split("\t")
        if attribute != "all":
            continue
        print(
            f"{names[arm]}: {accuracy} % ({low} to {high}), {right} of {cases} right, {unread} not readable"
        )
        if unread == "0":
            file = root / f"{arm}.jsonl"
            job("submit", f"run={run}", f"arm={arm}", f"out={file}")
            print(f"    its submission: {job('check', f'file={file}', f'root={data}').splitlines()[0]}")


def job(*words: str) -> str:
    """What a verb of `jobs/medthinkvqa.py` prints; an error where it finds a mistake."""
    environment = {**os.environ, "PYTHONPATH": str(JOB.parents[1])}
    done = subprocess.run(
        [sys.executable, str(JOB), *words], check=False, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


if __name__ == "__main__":
    main()
