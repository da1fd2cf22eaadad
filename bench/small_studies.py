"""Benchmark of the stream on many small studies: cases of MedThinkVQA a second, with an instant reader.

    .venv/bin/python bench/small_studies.py [cases] [override ...]

A case is read, rendered and passed on as for any model; `constant` gives the same letter to every question.
The rate is the number of requests executed divided by the seconds of generating, both from the manifest. They
include the start of Ray Data, so the rate grows with the cases. The seconds of the sweep are the sum of its
steps; the processor time is that of the sweep and all its processes.
"""

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

SWEEP = ["+experiment=medthinkvqa", "prompt=[direct]", "selector=[uniform]", "model=[constant]"]
CASES = 3_000


def main() -> None:
    from tests.support.cases.example_cases import make_cases

    cases = int(sys.argv[1]) if len(sys.argv) > 1 else CASES
    with tempfile.TemporaryDirectory() as folder:
        make_cases(Path(folder) / "cases", cases, 1)
        places = [f"dataset.source={folder}/cases", f"store={folder}/store", f"outputs={folder}/outputs"]
        command = [sys.executable, "-m", "cardiolens.sweep", *SWEEP, "tracker=none", *places, *sys.argv[2:]]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        (run,) = (Path(folder) / "outputs").iterdir()
        manifest = json.loads((run / "manifest.json").read_text())
    executed, seconds = manifest["requests"]["executed"], manifest["seconds"]["generate"]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(
        f"{executed:,} cases in {seconds:.1f} s: {executed / seconds:.0f} a second; "
        f"sweep {sum(manifest['seconds'].values()):.1f} s, processor {used.ru_utime + used.ru_stime:.0f} s"
    )


if __name__ == "__main__":
    main()
