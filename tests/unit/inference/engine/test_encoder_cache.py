"""The cache of encoder outputs holds as much as its room, and never less than vLLM's own."""

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.inference.engine.engine_memory import embedding_bytes, enlarge, room_on_gpu


def config(hidden: int, own: int = 2048, dtype: str = "torch.bfloat16", deepstack: object = None) -> Any:
    vision = SimpleNamespace(deepstack_visual_indexes=deepstack)
    model = SimpleNamespace(
        hf_config=SimpleNamespace(vision_config=vision), dtype=dtype, get_inputs_embeds_size=lambda: hidden
    )
    return SimpleNamespace(model_config=model, scheduler_config=SimpleNamespace(encoder_cache_size=own))


@given(st.integers(64, 16_384), st.integers(1024, 65_536), st.floats(0, 8))
def test_the_cache_fills_its_room_and_no_more_unless_vllm_gives_more(
    hidden: int, own: int, gib: float
) -> None:
    made = config(hidden, own)
    enlarge(made, gib)
    tokens = made.scheduler_config.encoder_cache_size
    assert tokens >= own
    assert tokens == own or (
        tokens * embedding_bytes(made) <= gib * 2**30 < (tokens + 1) * embedding_bytes(made)
    )


@pytest.mark.parametrize(
    ("made", "n_bytes"),
    [
        (config(3584), 7168),
        (config(3584, dtype="torch.float32"), 14_336),
        (config(4096, deepstack=[8, 16, 24]), 4 * 8192),
        (config(4096, deepstack=[]), 8192),
    ],
)
def test_a_token_takes_what_the_encoder_hands_on(made: Any, n_bytes: int) -> None:
    assert embedding_bytes(made) == n_bytes


def test_an_h100_keeps_the_frames_of_a_study_for_a_model_of_the_largest_width() -> None:
    made = config(8192)
    enlarge(made, room_on_gpu(80.0, 1.0, 0.9))
    assert made.scheduler_config.encoder_cache_size >= 300 * 256


@given(st.floats(8, 192), st.sampled_from([1.0, 0.5, 0.25]), st.floats(0.5, 0.99))
def test_what_running_requests_hold_fits_beside_the_engine_and_its_context(
    gib: float, share: float, of_share: float
) -> None:
    room = room_on_gpu(gib, share, share * of_share)
    assert room == 0 or 1.4 * room + 1.0 <= share * (1 - of_share) * gib + 1e-9


@pytest.mark.parametrize(
    ("gib", "share", "utilization", "room"),
    [(80, 1, 0.9, 2.4), (80, 1, 0.97, 1.0), (24, 0.25, 0.225, 0.0), (0, 1, 0.9, 0)],
)
def test_a_full_gpu_keeps_less_and_says_so(
    gib: float, share: float, utilization: float, room: float, caplog: pytest.LogCaptureFixture
) -> None:
    assert room_on_gpu(gib, share, utilization) == pytest.approx(room, abs=0.01)
    assert ("may be encoded again" in caplog.text) == (not gib or room < 0.03 * share * gib - 0.01)
    assert ("cannot be read" in caplog.text) == (not gib)
