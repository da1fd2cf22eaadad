"""On a machine with a GPU: the embedded model through the whole pipeline. Never run so far."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens import tables

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module")
def gpus() -> int:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a GPU")
    return torch.cuda.device_count()


def sweep(folder: Path, *words: str) -> Path:
    where = [f"store={folder}/store", f"outputs={folder}/outputs", "tracker=none"]
    cohort = ["dataset.phantom.canonical=[PH-NORMAL,PH-ICM-LAD]", "dataset.phantom.n_sampled=2"]
    data = [f"dataset.studies={folder}/data/studies", f"dataset.questions={folder}/data/questions.jsonl"]
    command = [sys.executable, "-m", "cardiolens.sweep", "+experiment=slice_ablation", "model=[tiny]"]
    subprocess.run([*command, *cohort, *data, *where, *words], check=True, timeout=900)
    (run,) = (folder / "outputs").iterdir()
    return run


def test_every_request_is_answered_and_counted(gpus: int, tmp_path: Path) -> None:
    run = sweep(tmp_path)
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["requests"]["ok"] == manifest["requests"]["unique"]
    assert manifest["models"]["tiny"]["device"] == "cuda"
    (completions,) = (tmp_path / "store" / "completions").iterdir()
    said = tables.read(completions, tables.COMPLETIONS, ("request_key", "prompt_tokens")).to_pylist()
    asked = tables.read(run / "requests" / "tiny", tables.REQUESTS, ("request_key", "predicted_tokens"))
    predicted = {row["request_key"]: row["predicted_tokens"] for row in asked.to_pylist()}
    assert all(row["prompt_tokens"] == predicted[row["request_key"]] for row in said)


def test_tensor_parallel_changes_no_key(gpus: int, tmp_path: Path) -> None:
    if gpus < 2:
        pytest.skip("needs two GPUs")
    sweep(tmp_path, "budget=[8]")
    before = len(list((tmp_path / "store" / "completions").iterdir()))
    sweep(tmp_path, "budget=[8]", "model.tiny.tensor_parallel=2", "name=parallel")
    assert len(list((tmp_path / "store" / "completions").iterdir())) == before == 1
