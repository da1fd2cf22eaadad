"""Scripts of bench/: GPUs rehearsed on CPU with a tiny model, published sizes, and kills at any time."""

import json
import sys
from pathlib import Path

import pytest

from bench.on_gpu.models import SIZES
from bench.soak import at_hand, soak
from tests.ray.conftest import COHORT, Place
from tests.ray.processes import printed_by

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
WORDS = ["name=soak", "model=[oracle,noisy,constant]", "selector=[clinical,random,uniform]", "budget=[8,16]"]
WORDS += ["tracker=none", "statistics.resamples=50"]


@pytest.mark.ray
def test_whatever_is_killed_nothing_is_lost(place: Place) -> None:
    data = [f"dataset.studies={place.data}/studies", f"dataset.questions={place.data}/questions.jsonl"]
    done = soak([*COHORT, *data, *WORDS], Path(place.root), mean_seconds=12.0)
    assert done.killed.total() > 0
    assert done.lost == 0
    assert done.twice <= done.killed.total() * at_hand()


@pytest.mark.ray
def test_the_command_measures_the_stream_and_bare_vllm_and_ends_by_itself(tmp_path: Path):
    """Both engines have the same settings."""
    out = tmp_path / "out"
    command = [sys.executable, "-m", "bench.gpu", "--rehearse", "--sizes", "7b", "--out", str(out)]
    printed = printed_by(command, ROOT)
    results = json.loads((out / "results.json").read_text())
    parts = {part["kind"]: part for part in results["parts"]}
    assert set(parts) == {"stream", "bare"}, printed
    for part in parts.values():
        assert part["answered"] == part["requests"] > 0
        assert part["rate"] > 0
        assert {"plan", "import of vLLM", "engine", "first answer", "weights"} <= part["start"].keys()
    assert parts["stream"]["encoded"] == pytest.approx(1)
    assert parts["stream"]["computed_tokens"] == parts["bare"]["computed_tokens"] > 0
    assert parts["stream"]["settings"] == parts["bare"]["settings"]
    assert {"start of Ray", "actor"} <= parts["stream"]["start"].keys()
    assert "tensor parallel 2" in printed
    assert (out / "results.md").read_text() in printed


@pytest.mark.parametrize("size", SIZES)
def test_a_real_size_has_as_many_parameters_as_published(size: str, tmp_path: Path):
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    (tmp_path / "config.json").write_text(json.dumps(dict(SIZES[size].config)))
    config = AutoConfig.from_pretrained(tmp_path)
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    assert sum(weights.numel() for weights in model.parameters()) == SIZES[size].parameters
