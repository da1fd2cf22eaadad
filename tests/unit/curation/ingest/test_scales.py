"""Slices whose files scale their stored values each for itself: on one scale where headers tell it."""

from collections.abc import Sequence
from pathlib import Path

import nibabel as nib
import numpy as np
from pydicom.uid import generate_uid

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.import_run import ingest
from tests.unit.curation.ingest.exports import LGE, NORMAL, SHORT_AXIS, header, proposals, save

MAKER = "Philips MR Imaging DD 001"
SIGNAL = np.random.default_rng(3).integers(1, 500, (5, 32, 32))
RESCALED = (1.0, 1.93748, 3.42979242, 1.0, 1.93748)


def export(folder: Path, scales: Sequence[float | None]) -> None:
    """Write SIGNAL as five series of one slice; a scale of the maker multiplies it before it is stored."""
    for k, scale in enumerate(scales):
        dataset = header(
            SeriesInstanceUID=generate_uid(),
            SeriesNumber=5 + k,
            SeriesDescription="LGE sax",
            Manufacturer="Philips Medical Systems",
            ImageOrientationPatient=SHORT_AXIS,
            ImagePositionPatient=[round(float(value), 5) for value in k * 8.0 * -NORMAL],
            RescaleSlope=RESCALED[k],
            RescaleIntercept=0.0,
            PixelData=(SIGNAL[k] * (scale or 1)).astype(np.uint16).tobytes(),
            **LGE,
        )
        if scale is not None:
            block = dataset.private_block(0x2005, MAKER, create=True)
            block.add_new(0x0D, "FL", 0.0)
            block.add_new(0x0E, "FL", scale)
        save(dataset, folder / "export" / f"{k}" / "IM1")


def imported(folder: Path, scales: Sequence[float | None]) -> tuple[np.ndarray, nib.Nifti1Image, list[str]]:
    """Intensities by (slice, row, column), most basal first; the file; and flags."""
    export(folder, scales)
    ingest(IngestSpec(source=folder / "export", out=folder / "out", key=folder / "key", threshold=0.3))
    (path,) = (folder / "out").glob("studies/*/lge_sax.nii")
    image = nib.load(path)
    (proposal,) = proposals(folder / "out")
    return image.get_fdata().transpose(2, 1, 0), image, proposal["flags"]


def test_slices_that_the_maker_scaled_apart_come_back_on_one_scale(tmp_path):
    values, _, flags = imported(tmp_path, [1.0, 2.0, 4.0, 0.5 * 4, 8.0])
    assert np.array_equal(values, SIGNAL)
    assert "values_changed" not in flags


def test_stored_values_stay_where_only_the_display_was_scaled_apart(tmp_path):
    values, image, flags = imported(tmp_path, [2.0] * 5)
    assert image.get_data_dtype().kind in "iu"
    assert np.array_equal(np.asarray(image.dataobj.get_unscaled()).transpose(2, 1, 0), SIGNAL * 2)
    assert np.array_equal(values, SIGNAL)
    assert "values_changed" not in flags
