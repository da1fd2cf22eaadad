"""Memory of GPUs: what the driver says, what is waited for, and the cache of encoder outputs."""

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from cardiolens.inference.engine.engine_memory import encoder_room, gpu_gib, tune, wait_for_memory
from cardiolens.runtime import nvidia_smi as module
from cardiolens.runtime.nvidia_smi import gib, gpu_rows


def config(
    hidden: int, dtype: str = "torch.bfloat16", deepstack: object = None, *, hybrid: bool = False
) -> Any:
    vision = SimpleNamespace(deepstack_visual_indexes=deepstack)
    model = SimpleNamespace(
        hf_config=SimpleNamespace(vision_config=vision),
        dtype=dtype,
        get_inputs_embeds_size=lambda: hidden,
        is_hybrid=hybrid,
    )
    cache = SimpleNamespace(enable_prefix_caching=True, prefix_match_unit=None)
    scheduler = SimpleNamespace(encoder_cache_size=2048)
    return SimpleNamespace(model_config=model, scheduler_config=scheduler, cache_config=cache)


@pytest.mark.parametrize(
    ("made", "room", "tokens"),
    [
        (config(8192), encoder_room(80.0, 0.9), 157_286),  # the frames of a study, for the widest model
        (config(3584), None, 2**30 // 7168),
        (config(3584, "torch.float32"), None, 2**30 // 14_336),
        (config(4096, deepstack=[8, 16, 24]), None, 2**30 // (4 * 8192)),
        (config(4096), 0.0, 2048),
    ],
)
def test_the_cache_fills_its_room_and_is_never_smaller_than_vllms(
    made: Any, room: float | None, tokens: int
) -> None:
    tune(made, room)
    assert made.scheduler_config.encoder_cache_size == tokens


@pytest.mark.parametrize(("gib", "utilization", "room"), [(80, 0.9, 2.4), (80, 0.97, 1.0), (0, 0.9, 0)])
def test_the_room_fits_beside_the_engine_and_its_context(gib: float, utilization: float, room: float) -> None:
    assert encoder_room(gib, utilization) == pytest.approx(room, abs=0.01)
    assert 1.4 * room + 1.0 <= (1 - utilization) * gib + 1e-9 or not room


def test_prefixes_of_a_hybrid_model_end_between_blocks() -> None:
    for hybrid in (True, False):
        made = config(4096, hybrid=hybrid)
        tune(made, 0.0)
        assert made.cache_config.prefix_match_unit == (16 if hybrid else None)


@pytest.mark.parametrize(("free", "waits"), [(20_000, True), (72_000, False)])
def test_memory_is_waited_for_as_long_as_patience_lasts(
    nvidia_smi: Callable[[str], None], free: int, waits: bool
):
    nvidia_smi(f"echo '80000, 80000'\necho '{free}, 80000'")
    began = time.monotonic()
    wait_for_memory(0.9, patience=0.5)
    assert (time.monotonic() - began >= 0.5) == waits


def test_only_the_gpus_of_this_process_are_asked_for(
    nvidia_smi: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    nvidia_smi('echo "${3:-of all}"')
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "5")
    assert gpu_rows(("memory.total",)) == [["--id=5"]]
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert gpu_rows(("memory.total",)) == [["of all"]]


@pytest.mark.parametrize("script", ["exit 9", "echo No devices were found", "exec sleep 60", ""])
def test_a_driver_in_trouble_has_no_gpus(
    nvidia_smi: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(module, "_SECONDS", 0.3)
    nvidia_smi(script)
    assert gpu_rows(("memory.free", "memory.total")) == []


def test_a_gpu_without_a_memory_of_its_own_is_not_waited_for(nvidia_smi: Callable[[str], None]) -> None:
    """As drivers say of GPUs that share the machine's memory."""
    nvidia_smi("echo '[N/A], [N/A]'")
    assert gib("[N/A]") is None
    assert gpu_gib() == 0.0
    began = time.monotonic()
    wait_for_memory(0.9, patience=30)
    assert time.monotonic() - began < 5
