"""Request keys: what is asked, all of it, and nothing else."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cardiolens.config.model import Sampling
from cardiolens.inference.models.token_counts import Rendering, frame_key
from cardiolens.inference.plan.request import hash_model, hash_of, request_key

TEXTS = st.text(max_size=8)
ASKED = st.tuples(TEXTS, TEXTS, TEXTS, st.lists(TEXTS, max_size=3), TEXTS, st.lists(TEXTS, max_size=3))


def key(asked: tuple) -> str:
    model_key, system, frames, frame_keys, ending, decoding = asked
    state = hash_of(system, frames, *frame_keys, after=hash_model(model_key, Sampling()))
    return request_key(state, ending, *decoding)


@given(ASKED, ASKED)
@example(("m", "ab", "", [], "", []), ("m", "a", "b", [], "", []))
def test_two_requests_share_a_key_only_if_they_are_the_same(one: tuple, other: tuple) -> None:
    """Also where the same characters are divided in another way."""
    asked_same = flat(one) == flat(other)
    assert (key(one) == key(other)) == asked_same


def flat(asked: tuple) -> list[str]:
    model_key, system, frames, frame_keys, ending, decoding = asked
    return [model_key, system, frames, *frame_keys, ending, *decoding]


def test_a_prefix_can_be_shared_without_being_spent() -> None:
    state = hash_of("s", "f", "k", after=hash_model("m", Sampling()))
    assert request_key(state, "q") == request_key(state, "q")
    assert request_key(state, "q") != request_key(state, "r")


def test_sampling_is_part_of_what_is_asked() -> None:
    keys = {
        request_key(hash_model("m", sampling), "q")
        for sampling in (Sampling(), Sampling(temperature=0.5, seed=1), Sampling(temperature=0.5, seed=2))
    }
    assert len(keys) == 3


def test_a_changed_pixel_or_rendering_is_another_frame() -> None:
    small, large = Rendering(64).digest, Rendering(448).digest
    assert len({frame_key("a", small), frame_key("b", small), frame_key("a", large)}) == 3


@pytest.mark.parametrize(
    ("native", "long_side", "shown"),
    [
        ((123, 61), 448, (448, 222)),
        ((1, 999), 64, (1, 64)),
    ],
)
def test_the_long_side_is_met_and_the_aspect_kept(
    native: tuple[int, int], long_side: int, shown: tuple[int, int]
) -> None:
    rendering = Rendering(long_side)
    assert rendering.size(*native) == shown
    assert rendering.apply(np.zeros(native, np.uint8)).shape == shown


def test_a_frame_that_fits_is_not_touched() -> None:
    pixels_HW = np.arange(64 * 64, dtype=np.uint8).reshape(64, 64)
    assert Rendering(64).apply(pixels_HW) is pixels_HW
