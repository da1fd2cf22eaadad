"""Memory of GPUs: waited for, and shared with the cache of encoder outputs."""

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cardiolens.inference.engine.engine_memory import encoder_room, tune, wait_for_memory


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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, waits: bool
):
    """A program in the place of nvidia-smi says what is free; none: nothing to wait for."""
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\necho '80000, 80000'\necho '{free}, 80000'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    began = time.monotonic()
    wait_for_memory(0.9, patience=0.5)
    assert (time.monotonic() - began >= 0.5) == waits
