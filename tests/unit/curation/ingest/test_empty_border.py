"""Voxels without a value: those around the picture become 0 and are counted, those within it are refused."""

import numpy as np
import pytest

from cardiolens.curation.ingest.empty_border import check_border, with_zeros
from cardiolens.curation.ingest.image import RejectedError
from cardiolens.curation.ingest.nifti.nifti_file import frames_at, scan
from tests.unit.curation.ingest.nifti_exports import save
from tests.unit.curation.ingest.test_bad_nifti import AFFINE, OTHER


def resliced(kind=np.nan) -> np.ndarray:
    """A volume turned in its frame: the corners lie outside of what was scanned."""
    values = OTHER.astype(np.float32)
    i, j = np.indices(values.shape[:2])
    values[i + j < 9] = kind
    return values


def place(tmp_path, values):
    from cardiolens.base.untrusted.file_place import Place

    save(tmp_path / "case.nii.gz", values, AFFINE)
    return Place(str(tmp_path / "case.nii.gz"))


def test_a_border_without_values_comes_in_as_zeros_and_is_counted(tmp_path):
    values = resliced()
    held = place(tmp_path, values)
    scanned = scan(held)
    assert "no_value_at_the_border" in scanned.flags
    assert f"{np.isnan(values).sum()} of {values.size} voxels" in scanned.axes.evidence
    frames = frames_at(held)
    assert np.isfinite(frames).all()
    assert (frames == 0).sum() >= np.isnan(values).sum()


@pytest.mark.parametrize("kind", [np.inf, -np.inf])
def test_an_infinite_border_is_refused(tmp_path, kind):
    with pytest.raises(RejectedError, match="not_finite"):
        scan(place(tmp_path, resliced(kind)))


def test_a_gap_within_the_picture_is_refused_with_its_size(tmp_path):
    values = resliced()
    values[15:17, 15:17, 2] = np.nan
    with pytest.raises(RejectedError) as refused:
        scan(place(tmp_path, values))
    assert "voxels within the picture hold no value" in refused.value.detail


def test_a_slice_without_any_value_is_refused():
    missing = np.zeros((3, 1, 8, 8), bool)
    missing[2] = True
    with pytest.raises(RejectedError) as refused:
        check_border(missing)
    assert "no value at all" in refused.value.detail


def test_whole_values_are_not_copied():
    values = np.ones((4, 4), np.float32)
    filled, missing = with_zeros(values)
    assert filled is values
    assert missing is None
