"""The size of a model's weights as an engine holds them."""

import json
from pathlib import Path

import pytest

from cardiolens.config.model import ModelSpec
from cardiolens.inference.plan.candidates import weight_gib

MIB = 2**20


def model(**options: object) -> ModelSpec:
    return ModelSpec.model_validate({"name": "m", "source": "hub/m", **options})


EIGHT_BILLION = {
    **{"architecture": "X", "field": "general", "licence": "x", "context": 1, "thinking": "never"},
    **{"image_rule": "x", "verified": "none", "note": "x", "parameters": 8, "attention_heads": 32},
}


def write(path: Path, mib: int) -> None:
    path.write_bytes(b"\0" * mib * MIB)


def mib(spec: ModelSpec, folder: Path | None) -> float:
    found = weight_gib(spec, folder)
    assert found is not None
    return found * 1024


def test_declared_measured_or_from_parameters(tmp_path: Path):
    write(tmp_path / "model-1.safetensors", 2)
    write(tmp_path / "model-2.safetensors", 2)
    assert mib(model(card=EIGHT_BILLION), tmp_path) == pytest.approx(4, abs=0.01)
    assert weight_gib(model(weight_gib=3.0), tmp_path) == 3.0
    assert weight_gib(model(card=EIGHT_BILLION), None) == pytest.approx(14.9, abs=0.01)
    assert weight_gib(model(), None) is None


def test_a_second_copy_of_the_weights_is_not_counted(tmp_path: Path):
    write(tmp_path / "model-1.safetensors", 2)
    write(tmp_path / "consolidated.safetensors", 3)
    assert mib(model(), tmp_path) == pytest.approx(2, abs=0.01)
    mistral = model(engine_options={"load_format": "mistral"})
    assert mib(mistral, tmp_path) == pytest.approx(3, abs=0.01)
    write(tmp_path / "old.safetensors", 5)
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-1.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert mib(model(), tmp_path) == pytest.approx(2, abs=0.01)
