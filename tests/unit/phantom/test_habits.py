"""Habits of other makers, sites, archives and anonymisers: each is named, sourced, and does what it says."""

from itertools import islice
from pathlib import Path

import numpy as np
import pydicom
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.dicom import dicom_export as exporting
from cardiolens.phantom.dicom import stacks
from cardiolens.phantom.dicom.dicom_export import make_export, write_exam
from cardiolens.phantom.dicom.habits import CHANGES, habits
from cardiolens.phantom.dicom.scouts import scouts
from cardiolens.phantom.dicom.spec import ExportSpec
from cardiolens.phantom.planes import Size, views

SPEC = PhantomSpec(n_sampled=1)
SIZE = Size(pixels=32, spacing_mm=6.4, phases=2, beats=2, layers=1)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few and small stacks: files take the time."""
    some = {code: views()[code] for code in ("cine_sax", "lge_2ch")}
    monkeypatch.setattr(exporting, "sizes", lambda: {"ci": SIZE})
    monkeypatch.setattr(stacks, "views", lambda: some)
    monkeypatch.setattr(exporting, "scouts", lambda camera: islice(scouts(camera), 1))


def written(folder: Path, name: str = "", vendor: str = "") -> list[pydicom.Dataset]:
    """The files of an exam, with a habit or as the vendor writes it."""
    of = vendor or habits()[name].vendor
    write_exam("PH-0001", SPEC, ExportSpec(vendor=of, habit=name), folder)
    return [pydicom.dcmread(path, force=True) for path in sorted(folder.rglob("*")) if path.is_file()]


def test_thirty_habits_and_more_name_where_they_were_seen():
    assert len(habits()) >= 30
    for habit in habits().values():
        assert habit.seen
        assert habit.what
        assert set(habit.changes) <= CHANGES.keys()
        assert habit.write or habit.remove or habit.changes or habit.bare
    named = {name for habit in habits().values() for name in habit.changes}
    assert named == CHANGES.keys(), "no change that nobody makes"


def test_tiles_hold_the_pixels_of_all_slices(tmp_path):
    plain = [each for each in written(tmp_path / "a", vendor="ge") if "FIESTA" in each.SeriesDescription]
    tiled = [each for each in written(tmp_path / "b", "mosaic") if "MOSAIC" in each.ImageType]
    assert tiled
    assert {int(each.Rows) % SIZE.pixels for each in tiled} == {0}
    assert plain[0].Rows == SIZE.pixels


def test_a_slope_for_each_frame_leaves_the_intensities(tmp_path):
    def intensities(datasets: list[pydicom.Dataset]) -> np.ndarray:
        frames = []
        for dataset in datasets:
            for pixels, group in zip(
                np.atleast_3d(dataset.pixel_array.reshape(-1, SIZE.pixels, SIZE.pixels)),
                dataset.PerFrameFunctionalGroupsSequence,
                strict=True,
            ):
                [scaled] = group.PixelValueTransformationSequence
                frames.append(pixels * float(scaled.RescaleSlope) + float(scaled.RescaleIntercept))
        return np.array(frames)

    plain = intensities(written(tmp_path / "a", vendor="enhanced"))
    changed = intensities(written(tmp_path / "b", "slope_per_frame"))
    assert np.allclose(plain, changed, atol=0.01)


def test_frames_taken_apart_are_all_there(tmp_path):
    plain = written(tmp_path / "a", vendor="enhanced")
    count = sum(int(each.NumberOfFrames) for each in plain)
    for name in ("split_to_single_frames", "frame_per_enhanced_file"):
        single = written(tmp_path / name, name)
        assert len(single) == count
        assert len({each.SOPInstanceUID for each in single}) == count


def test_bytes_that_no_check_has_seen_are_written(tmp_path):
    [*_, raw] = (path.read_bytes() for path in sorted(_folder(tmp_path, "spacing_with_decimal_commas")))
    assert b"6,4\\6,4" in raw
    assert all(b"DICM" not in path.read_bytes()[:200] for path in _folder(tmp_path, "no_file_meta"))


def _folder(root: Path, name: str) -> list[Path]:
    written(root / name, name)
    return [path for path in (root / name).rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("habit", "expected"), [("nobody", "is unknown; choose one of"), ("mosaic", "is one of vendor=siemens")]
)
def test_a_habit_of_nobody_or_of_another_vendor_is_refused(tmp_path, habit, expected):
    with pytest.raises(InputError, match=expected):
        make_export(SPEC, ExportSpec(vendor="ge", habit=habit), tmp_path / "out")
