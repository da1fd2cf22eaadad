"""A sweep whose engine lacks memory: its message ends in the setting to change."""

import pytest

from tests.ray.conftest import ASKED, Place

pytestmark = pytest.mark.full


@pytest.mark.ray
@pytest.mark.long
def test_a_cache_without_room_for_one_request_is_named_with_its_remedy(place: Place):
    printed = place.sweep(
        *ASKED, "limit=1", "model.tiny.engine_options.kv_cache_memory_bytes=1048576", expect=1
    )
    assert "KV cache" in printed
    assert (
        "lower max_model_len, raise gpu_memory_utilization (without GPUs: kv_cache_memory_bytes)" in printed
    )
    assert "Traceback" not in printed
