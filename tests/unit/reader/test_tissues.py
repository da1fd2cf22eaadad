"""Tissues of pixels and what image tokens are to tell of them."""

import numpy as np
import pytest

from cardiolens.phantom import codes
from cardiolens.reader.tissues import (
    KINDS,
    LESIONS,
    WALLS,
    WEIGHTS,
    concept_weights,
    concepts,
    healed,
    pixel_kinds,
)


def kind_of(code: int) -> int:
    return int(pixel_kinds(np.full((1, 1), code), 1)[0, 0])


@pytest.mark.parametrize("size", [64, 128, 192])
def test_a_mask_of_any_size_is_seen_at_that_of_the_frame(size):
    mask = np.zeros((size, size), np.uint8)
    mask[:, size // 2 :] = codes.RV_BLOOD
    kinds = pixel_kinds(mask, 64)
    assert set(kinds[:, :32].flat) == {0}
    assert set(kinds[:, 32:].flat) == {kind_of(codes.RV_BLOOD)} != {0}


def test_every_segment_has_one_wall_and_the_lesion_of_that_wall():
    for segment in range(1, 18):
        wall, lesion = kind_of(segment), kind_of(codes.LESION + segment)
        assert (wall in WALLS, lesion in LESIONS) == (True, True)
        assert WALLS.index(wall) == LESIONS.index(lesion)
        assert kind_of(codes.DARK_RIM + segment) == wall, "an artefact is no lesion"
        assert kind_of(codes.OBSTRUCTION + segment) == lesion


def test_what_lies_around_the_heart_is_ground():
    assert {kind_of(code) for code in (codes.BACKGROUND, codes.LUNG, codes.FAT, codes.LIVER)} == {0}


def test_a_token_tells_its_own_part_and_the_whole_and_a_wall_has_its_lesions():
    kinds = np.zeros((1, 64, 64), np.uint8)
    kinds[0, :4, :4] = LESIONS[0]
    told = concepts(kinds, 2)
    assert told.shape == (1, 4, 2 * (len(KINDS) - 1))
    assert told.shape[-1] == len(concept_weights())
    own, whole = told[0, :, : len(KINDS) - 1], told[0, :, len(KINDS) - 1 :]
    assert own[0, LESIONS[0] - 1] > 0
    assert own[0, WALLS[0] - 1] > 0
    assert not own[1:].any(), "nothing lies in the other parts"
    assert (whole == whole[0]).all()
    assert whole[0, LESIONS[0] - 1] > 0
    assert (own > 0).sum() == 2
    assert (whole[0] > 0).sum() == 2


def test_before_contrast_arrives_a_lesion_is_wall_and_nothing_else_changes():
    kinds = np.arange(len(KINDS), dtype=np.uint8).reshape(1, 1, -1)
    seen = healed(kinds)[0, 0]
    assert tuple(seen[list(LESIONS)]) == WALLS
    others = [kind for kind in range(len(KINDS)) if kind not in LESIONS]
    assert list(seen[others]) == others


def test_the_ground_counts_least():
    assert len(WEIGHTS) == len(KINDS)
    assert min(WEIGHTS) == WEIGHTS[0]
