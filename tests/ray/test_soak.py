"""A short form of bench/soak.py: anything may be killed at any time, and nothing is lost."""

from pathlib import Path

import pytest

from bench.soak import at_hand, soak
from tests.ray.conftest import COHORT, Place

pytestmark = pytest.mark.full

WORDS = [
    "name=soak",
    "model=[oracle,noisy,constant]",
    "selector=[clinical,random,uniform]",
    "budget=[8,16]",
    "tracker=none",
    "statistics.resamples=50",
]


@pytest.mark.long
@pytest.mark.ray
def test_whatever_is_killed_nothing_is_lost(place: Place) -> None:
    data = [f"dataset.studies={place.data}/studies", f"dataset.questions={place.data}/questions.jsonl"]
    done = soak([*COHORT, *data, *WORDS], Path(place.root), mean_seconds=12.0)
    assert done.killed.total() > 0
    assert done.lost == 0
    assert done.twice <= done.killed.total() * at_hand()
