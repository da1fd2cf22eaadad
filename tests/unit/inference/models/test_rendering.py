"""Frames as they are shown."""

import numpy as np
import pytest

from cardiolens.inference.models.token_counts import Rendering


@pytest.mark.parametrize(
    ("native", "long_side", "shown"),
    [
        ((256, 256), 448, (448, 448)),
        ((336, 448), 448, (336, 448)),
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
