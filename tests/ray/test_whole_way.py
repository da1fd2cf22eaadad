"""From a scanner's export and reports to a released, swept and scored benchmark, by the program's verbs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.storage import schemas, tables

pytestmark = pytest.mark.ray
JOB = Path(__file__).resolve().parents[2] / "jobs" / "whole_way.py"


def test_the_whole_way_in(tmp_path: Path) -> None:
    out = tmp_path / "way"
    command = [sys.executable, str(JOB), f"out={out}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1500)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in (out / "release" / "questions.jsonl").read_text().splitlines()]
    assert len(lines) > 60
    assert {line["verification"]["status"] for line in lines} == {"verified"}
    (run,) = (out / "outputs").iterdir()
    verdicts = tables.read(run / "verdicts", schemas.VERDICTS, ("arm_id", "correct")).to_pylist()
    oracle = [row["correct"] for row in verdicts if row["arm_id"].startswith("oracle")]
    assert all(oracle)
    assert len(oracle) == 2 * len(lines)
    assert (run / "index.html").exists()
    links = [json.loads(line) for line in (out / "links.jsonl").read_text().splitlines()]
    leads = ("study_id", "patient_id", "patient", "accession")
    named = {str(one[name]) for one in links for name in leads if one.get(name)}
    assert named
    files = [path for path in (out / "release").rglob("*.json*") if run not in path.parents]
    released = b"".join(path.read_bytes() for path in files)
    assert not [one for one in named if one.encode() in released], "ids lead nowhere"
