"""The size of a model's weights as an engine holds them."""

import json
import struct
from pathlib import Path

import pytest

from cardiolens.config.model import ModelSpec
from cardiolens.inference.plan.candidates import weight_gib

MIB = 2**20


def model(**options: object) -> ModelSpec:
    return ModelSpec.model_validate({"name": "m", "source": "hub/m", **options})


def write(path: Path, mib: int, dtype: str = "BF16") -> None:
    """A safetensors file with one tensor."""
    size = mib * MIB
    header = json.dumps({"weight": {"dtype": dtype, "shape": [size], "data_offsets": [0, size]}}).encode()
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * size)


def config(folder: Path, **content: object) -> None:
    (folder / "config.json").write_text(json.dumps(content))


def mib(spec: ModelSpec, folder: Path | None) -> float:
    found = weight_gib(spec, folder)
    assert found is not None
    return found * 1024


def test_declared_measured_or_from_parameters(tmp_path: Path):
    assert weight_gib(model(weight_gib=3.0), tmp_path) == 3.0
    write(tmp_path / "model-1.safetensors", 2)
    write(tmp_path / "model-2.safetensors", 2)
    assert mib(model(parameters=8), tmp_path) == pytest.approx(4, abs=0.01)
    assert weight_gib(model(weight_gib=3.0), tmp_path) == 3.0
    assert weight_gib(model(parameters=8), None) == pytest.approx(14.9, abs=0.01)
    assert weight_gib(model(), None) is None


def test_files_whose_header_cannot_be_read_count_as_they_are(tmp_path: Path):
    (tmp_path / "model-1.safetensors").write_bytes(b"\0" * 1024)
    assert weight_gib(model(), tmp_path) == 1024 / 2**30


def test_published_quantized_weights_count_as_they_are(tmp_path: Path):
    write(tmp_path / "model.safetensors", 2, "F8_E4M3")
    config(tmp_path, quantization_config={"quant_method": "fp8"})
    assert mib(model(weight_gib=3.0), tmp_path) == pytest.approx(2, abs=0.01)
    config(tmp_path, text_config={"quantization_config": {"quant_method": "fp8"}})
    assert mib(model(weight_gib=3.0, quantization="fp8"), tmp_path) == pytest.approx(2, abs=0.01)


def test_weights_that_vllm_quantizes_shrink(tmp_path: Path):
    config(tmp_path)
    write(tmp_path / "model.safetensors", 10)
    assert mib(model(quantization="fp8_per_tensor"), tmp_path) == pytest.approx(6, abs=0.01)
    assert mib(model(quantization="fp8_per_tensor", weight_gib=3.0), tmp_path) == pytest.approx(6, abs=0.01)
    assert mib(model(quantization="unheard_of"), tmp_path) == pytest.approx(10, abs=0.01)
    served = model(quantization="fp8_per_tensor", weight_gib=0.001)  # as served, declared
    assert weight_gib(served, tmp_path) == 0.001


def test_weights_of_32_bits_are_loaded_in_16(tmp_path: Path):
    write(tmp_path / "model.safetensors", 4, "F32")
    assert mib(model(), tmp_path) == pytest.approx(2, abs=0.01)
    assert mib(model(dtype="float32"), tmp_path) == pytest.approx(4, abs=0.01)


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
