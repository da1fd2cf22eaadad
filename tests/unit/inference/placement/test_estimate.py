"""Hours of a plan: prefixes computed once, frames encoded once."""

from dataclasses import replace

import pytest

from cardiolens.inference.placement.footprint import most_seconds, work_seconds
from cardiolens.inference.placement.placement import place
from tests.unit.clusters import EIGHT, model

REUSING = replace(
    model("m", 16.0, billions=8.0, prompt_tokens=100_000_000, output_tokens=1_000_000),
    computed_tokens=10_000_000,
    encoder_tokens=1_000_000,
    reply_tokens=100_000,
)


def test_what_caches_give_is_not_computed_again() -> None:
    encoding = 1e6 * 4 * 0.675 / 80_000
    assert work_seconds(REUSING) == pytest.approx(8 * (1e7 / 80_000 + 1e5 / 16_000) + encoding)
    assert most_seconds(REUSING) == pytest.approx(8 * (1e8 / 80_000 + 1e6 / 16_000))
    (deployment,) = place(EIGHT, [REUSING]).deployments
    assert deployment.seconds < deployment.most_seconds / 3


def test_without_a_count_the_hours_are_the_most() -> None:
    unknown = replace(REUSING, computed_tokens=None)
    assert work_seconds(unknown) == most_seconds(unknown)
