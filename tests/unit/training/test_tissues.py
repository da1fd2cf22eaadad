"""Shares of tissues in patches, as the image encoder learns them."""

import numpy as np

from cardiolens.phantom import codes
from cardiolens.training.tissues import KINDS, shares


def kind_of(code: int) -> list[int]:
    return [place for place, kind in enumerate(KINDS) if code in kind]


def test_a_patch_of_one_tissue_is_all_of_it_and_its_neighbours_none():
    mask = np.zeros((64, 64), np.uint8)
    mask[8:16, 16:24] = codes.LV_BLOOD
    found = shares(mask, 8)
    assert found.shape == (64, len(KINDS))
    expected = np.zeros_like(found)
    expected[1 * 8 + 2, kind_of(codes.LV_BLOOD)] = 1
    np.testing.assert_array_equal(found, expected)


def test_patches_are_as_large_as_the_frame_allows():
    mask = np.zeros((128, 128), np.uint8)
    mask[:, 64:] = codes.RV_BLOOD
    found = shares(mask, 8)[:, kind_of(codes.RV_BLOOD)].reshape(8, 8)
    np.testing.assert_array_equal(found, np.repeat([[0, 0, 0, 0, 1, 1, 1, 1]], 8, axis=0))


def test_a_lesion_counts_as_its_wall_and_as_a_lesion():
    assert len(kind_of(codes.LESION + 8)) == 2
    assert len(kind_of(8)) == 1
    assert set(kind_of(8)) < set(kind_of(codes.LESION + 8))


def test_every_segment_of_the_wall_is_of_one_kind():
    assert all(len(kind_of(segment)) == 1 for segment in range(1, 18))
    assert kind_of(codes.BACKGROUND) == kind_of(codes.LUNG) == []
