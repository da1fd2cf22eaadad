"""The breaks of bench/pixels.py, and the test of what they cost."""

import json

import numpy as np
import pytest

from bench.pixels import BREAKS, FRAMES, UNTOUCHED, WRONG_STUDY, break_cohort, sign_test
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort
from cardiolens.study.manifest import read_study

pytestmark = pytest.mark.full


@pytest.mark.parametrize("name", FRAMES)
def test_a_break_moves_frames_and_invents_none(name):
    frames = np.random.default_rng(1).integers(0, 4096, (8, 8, 5, 6))
    changed = FRAMES[name](frames)
    assert changed.shape == frames.shape
    shown = np.sort(changed, axis=None)
    assert np.array_equal(shown, np.sort(frames, axis=None)) or (
        name == "slice_off" and np.isin(shown, frames).all()
    )
    assert np.array_equal(changed, frames) == (name == UNTOUCHED)


def test_a_broken_cohort_can_be_read_and_asks_the_same(tmp_path):
    make_cohort(PhantomSpec(seed=9, n_sampled=2), tmp_path / "whole")
    break_cohort(tmp_path / "whole", tmp_path / "broken")
    folders = sorted((tmp_path / "broken" / "studies").iterdir())
    assert len(folders) == 2 * len(BREAKS)
    assert {read_study(folder).study_id for folder in folders} == {folder.name for folder in folders}
    asked = [json.loads(line) for line in (tmp_path / "broken" / "questions.jsonl").read_text().splitlines()]
    original = [
        json.loads(line) for line in (tmp_path / "whole" / "questions.jsonl").read_text().splitlines()
    ]
    assert len(asked) == len(BREAKS) * len(original)
    elsewhere = [one for one in asked if not one["qa_id"].startswith(f"{one['study_id']}:")]
    assert elsewhere
    assert all(one["qa_id"].startswith(WRONG_STUDY) for one in elsewhere)


def test_the_sign_test_is_that_of_coins():
    assert sign_test(0, 0) == 1
    assert sign_test(5, 0) == 1 / 32
    assert sign_test(3, 3) == pytest.approx((20 + 15 + 6 + 1) / 64)
