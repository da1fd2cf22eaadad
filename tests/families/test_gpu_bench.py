"""The real sizes of the bench for GPUs are those that are published."""

import json
from pathlib import Path

import pytest

from bench.on_gpu.models import SIZES


@pytest.mark.long
@pytest.mark.parametrize("size", SIZES)
def test_a_real_size_has_as_many_parameters_as_published(size: str, tmp_path: Path):
    import torch
    from transformers import AutoConfig, AutoModelForImageTextToText

    (tmp_path / "config.json").write_text(json.dumps(dict(SIZES[size].config)))
    config = AutoConfig.from_pretrained(tmp_path)
    with torch.device("meta"):
        model = AutoModelForImageTextToText.from_config(config)
    assert sum(weights.numel() for weights in model.parameters()) == SIZES[size].parameters
