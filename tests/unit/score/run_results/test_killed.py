"""A sweep without Ray, killed as it writes each of its files: the same command gets there."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from pandas.testing import assert_frame_equal
from small_cohort import make_cohort

from cardiolens.storage import schemas, tables
from cardiolens.storage.places import Run

ROOT = Path(__file__).resolve().parents[4]
PLUGIN = ROOT / "tests" / "ray" / "plugin"
SWEEP = """
import sys
from pathlib import Path
from small_cohort import reader, sweep_spec, swept
from page_run import write_record
from cardiolens.show.page.write import write_page

planned, judged = swept(sweep_spec(Path(sys.argv[1]), reader("uniform"), subtask=["C01", "C03", "L01"]))
write_record(planned, judged)
write_page(planned.run, [planned.run])
"""
FILES = (
    "questions/part-",
    "requests/uniform/part-",
    "requests/uniform/plan.json",
    "completions/",
    "verdicts/part-",
    "scores/part-",
    "analyses.json",
    "manifest.json",
    "index.html",
)


def sweep(place: Path, killed_at: str = "") -> int:
    paths = os.pathsep.join(map(str, (PLUGIN, ROOT, ROOT / "tests" / "unit")))
    environment = {**os.environ, "PYTHONPATH": paths, "CARDIOLENS_TEST_KILL": killed_at}
    words = [sys.executable, "-c", SWEEP, str(place)]
    return subprocess.run(words, env=environment, capture_output=True, check=False).returncode


@pytest.mark.long
def test_a_sweep_killed_at_each_of_its_files_gets_there(tmp_path: Path) -> None:
    tried, whole = (make_cohort(tmp_path / name, 2) for name in ("tried", "whole"))
    for file in FILES:
        assert sweep(tried, file) == -signal.SIGKILL, file
    assert sweep(tried) == sweep(whole) == 0
    runs = [Run(next((place / "outputs").iterdir())) for place in (tried, whole)]
    verdicts = [tables.read(run.verdicts, schemas.VERDICTS) for run in runs]
    assert verdicts[0].num_rows
    assert verdicts[0].equals(verdicts[1])
    assert_frame_equal(*(tables.read(run.scores, schemas.SCORES).to_pandas() for run in runs))
    assert all(run.page.exists() for run in runs)
