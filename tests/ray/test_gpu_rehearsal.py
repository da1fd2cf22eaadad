"""The bench for GPUs, rehearsed on CPU with a tiny model: both engines have the same settings."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]


@pytest.mark.ray
def test_the_command_measures_the_stream_and_bare_vllm_and_ends_by_itself(tmp_path: Path):
    command = [
        sys.executable,
        "-m",
        "bench.gpu",
        "--rehearse",
        "--sizes",
        "7b",
        "--out",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1500, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    parts = {part["kind"]: part for part in results["parts"]}
    assert set(parts) == {"stream", "bare"}, done.stdout
    for part in parts.values():
        assert part["answered"] == part["requests"] > 0
        assert part["rate"] > 0
        assert {"plan", "import of vLLM", "engine", "first answer", "weights"} <= part["start"].keys()
    assert parts["stream"]["encoded"] == pytest.approx(1)
    assert parts["stream"]["computed_tokens"] == parts["bare"]["computed_tokens"] > 0
    assert parts["stream"]["settings"] == parts["bare"]["settings"]
    assert {"start of Ray", "actor"} <= parts["stream"]["start"].keys()
    assert "tensor parallel 2" in done.stdout
    assert (tmp_path / "out" / "results.md").read_text() in done.stdout
