"""Studies that show the same pictures, by the hashes of their frames."""

import numpy as np

from cardiolens.study.same_pixels import HashedFrames, same_studies


def hashed(*rows: tuple[str, str, int]) -> HashedFrames:
    return HashedFrames.of([(study, volume, f"{picture:02x}" * 32) for study, volume, picture in rows])


def test_a_small_volume_within_a_large_one_is_found_whichever_study_comes_first() -> None:
    """Half of the frames of either volume are enough; names and sides decide nothing."""
    pictures = (0x0F, 0xF0, 0x33, 0xCC, 0x55, 0xAA, 0x3C, 0xC3)
    for large, small in ("AB", "BA"):
        whole = hashed(*((large, "cine_sax", picture) for picture in pictures))
        part = hashed(*((small, "lge_sax", picture) for picture in pictures[:2]))
        both = HashedFrames((*whole.volumes, *part.volumes), np.concatenate([whole.bits, part.bits]))
        assert same_studies(both, both) == {("A", "B"): 2, ("B", "A"): 2}
        assert same_studies(whole, part) == {(large, small): 2}
        assert same_studies(part, whole) == {(small, large): 2}
    few = hashed(*(("C", "lge_sax", picture) for picture in (0x0F, 0x11, 0x77)))
    assert same_studies(whole, few) == {}
