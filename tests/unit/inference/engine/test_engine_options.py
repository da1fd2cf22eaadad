"""Options that a model's file hands to vLLM: which are legal, who sets them, and that they arrive."""

from dataclasses import fields
from importlib import import_module
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.engine_options import SAME_ANSWERS, SET_HERE
from cardiolens.config.model import ModelSpec
from cardiolens.inference.engine import engine_memory, startup, vllm_engine
from cardiolens.inference.engine.startup import check_engine_options, known_options
from cardiolens.inference.engine.vllm_engine import VllmEngine
from cardiolens.inference.models.identity import Identity
from cardiolens.inference.placement.placement import Deployment

TINY = ["model=[tiny]"]


def option(text: str) -> list[str]:
    return [*TINY, f"+model.tiny.engine_options.{text}"]


@pytest.mark.full
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch's own, when vLLM imports it
def test_the_legal_names_are_the_fields_of_the_installed_vllm():
    of_vllm = {field.name for field in fields(import_module("vllm.engine.arg_utils").AsyncEngineArgs)}
    assert known_options() == {name for name in of_vllm if not name.startswith("_")}
    assert known_options() >= SAME_ANSWERS | SET_HERE.keys()
    assert not SAME_ANSWERS & SET_HERE.keys()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kv_cache_dtyp=fp8", r"model tiny: engine_options\.kv_cache_dtyp: .*nearest are kv_cache_dtype"),
        ("tensor_parallel_size=2", "tensor_parallel_size is set by CardioLens; use tensor_parallel"),
        ("gpu_memory_utilization=2", "expected a share above 0, at most 1"),
    ],
)
def test_an_option_that_vllm_does_not_have_or_that_has_a_setting_is_refused(text: str, said: str):
    with pytest.raises(InputError, match=said):
        check_engine_options(read_spec(option(text)))


def test_only_an_engine_of_vllm_has_them():
    with pytest.raises(InputError, match="engine: oracle"):
        read_spec(["model=[oracle]", "+model.oracle.engine_options.kv_cache_dtype=fp8"])


def test_without_vllm_nothing_is_known_and_nothing_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(startup, "known_options", frozenset)
    check_engine_options(read_spec(option("zzz=1")))


def handed(monkeypatch: pytest.MonkeyPatch, device: str = "cuda", **options: object) -> dict[str, object]:
    """What vLLM is given for a model."""
    monkeypatch.setattr(vllm_engine, "installed_engine", lambda: (device, "0.32.0"))
    videos = bool(options.pop("shows_videos", False))
    model = ModelSpec.model_validate({"name": "m", "source": "hub/m", **options})
    deployment = Deployment("m", 2, 1, (("a",),), 0.9, "", 0.0)
    engine = VllmEngine(model, Identity("m-0", Path("/m"), {}), 8, deployment, shows_videos=videos)
    return engine._engine_options()


def test_they_arrive_at_vllm_above_defaults_and_below_settings(monkeypatch: pytest.MonkeyPatch):
    nested = {"mm_processor_kwargs": {"max_pixels": 100_000}, "enable_prefix_caching": False}
    found = handed(monkeypatch, engine_options={**nested, "load_format": "hf"})
    assert found["mm_processor_kwargs"] == {"max_pixels": 100_000}
    assert found["enable_prefix_caching"] is False
    assert found["load_format"] == "hf"
    assert found["tensor_parallel_size"] == 2
    assert "load_format" not in handed(monkeypatch)


def test_memory_is_the_placement_s_on_gpus_and_the_file_s_without(monkeypatch: pytest.MonkeyPatch):
    options = {"gpu_memory_utilization": 0.5, "kv_cache_memory_bytes": 7}
    found = handed(monkeypatch, engine_options=options)
    assert (found["gpu_memory_utilization"], found["kv_cache_memory_bytes"]) == (0.9, 7)
    assert handed(monkeypatch, device="cpu", engine_options=options)["kv_cache_memory_bytes"] == 7


def test_room_is_kept_for_videos_only_where_they_are_shown(monkeypatch: pytest.MonkeyPatch):
    assert handed(monkeypatch)["limit_mm_per_prompt"] == {"image": 8, "video": 0}
    filmed = handed(monkeypatch, shows_videos=True)["limit_mm_per_prompt"]
    assert filmed == {"image": 8, "video": {"count": 4, "num_frames": 8, "width": 448, "height": 448}}


@pytest.mark.parametrize(("mib", "tokens"), [(81_559, 16_384), (46_068, 8_192)])
def test_steps_are_as_large_as_the_memory_bears(mib: int, tokens: int, monkeypatch: pytest.MonkeyPatch):
    rows = [[str(mib)] * 2, [str(2 * mib)] * 2]
    monkeypatch.setattr(engine_memory, "gpu_rows", lambda fields: rows)
    assert handed(monkeypatch)["max_num_batched_tokens"] == tokens
    own = handed(monkeypatch, engine_options={"max_num_batched_tokens": 4096})
    assert own["max_num_batched_tokens"] == 4096
    assert "max_num_batched_tokens" not in handed(monkeypatch, device="cpu")
