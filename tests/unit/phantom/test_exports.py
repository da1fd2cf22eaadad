"""The generators of tests/support: pixels of an export, what a report says, and the words of the job."""

import json
import re
from itertools import islice

import nibabel as nib
import numpy as np
import pydicom
import pytest

from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import phantom_cohort as cohort
from cardiolens.phantom.parameters import canonical_values
from cardiolens.phantom.planes import Size, views
from cardiolens.phantom.roster import catalogue, study
from cardiolens.protocol.tasks.instantiate import answer
from cardiolens.protocol.tasks.truth import findings
from jobs.make_phantom import main
from tests.support.dicom import dicom_export as exporting
from tests.support.dicom import stacks
from tests.support.dicom.scouts import scouts
from tests.support.dicom.spec import ExportSpec
from tests.support.free_text.free_report import free_report

SPEC = PhantomSpec(n_sampled=1)
SIZE = Size(pixels=32, spacing_mm=6.4, phases=2, beats=2, layers=1)  # small: files take the time
SHORT = {code: views()[code] for code in ("cine_sax", "lge_2ch")}


@pytest.fixture
def small(monkeypatch):
    for module in (cohort, exporting):
        monkeypatch.setattr(module, "sizes", lambda: {"ci": SIZE})
    for module in (cohort, stacks):
        monkeypatch.setattr(module, "views", lambda: SHORT)
    monkeypatch.setattr(exporting, "scouts", lambda camera: islice(scouts(camera), 1))


def shown(pixels, display):
    """A stored matrix as displayed, by the steps of the truth."""
    pixels = pixels.T if display["transpose"] else pixels
    pixels = pixels[::-1] if display["flip_rows"] else pixels
    return pixels[:, ::-1] if display["flip_cols"] else pixels


@pytest.mark.parametrize("vendor", ["siemens", "enhanced"])
def test_pixels_are_those_of_the_nifti_cohort_and_files_hold_the_identity(vendor, small, tmp_path):
    cohort.write_study("PH-0001", SPEC, tmp_path / "nifti")
    exporting.make_export(SPEC, ExportSpec(vendor=vendor, repeats=0.5, wrong_names=0.3), tmp_path / "made")
    truth = json.loads((tmp_path / "made" / "truth.jsonl").read_text())
    read = {
        path.relative_to(tmp_path / "made" / "export").as_posix(): pydicom.dcmread(path)
        for path in (tmp_path / "made" / "export").rglob("*")
        if path.is_file()
    }
    seen = set()
    for name, number, phase, _, frame, file in (line for one in truth["series"] for line in one["images"]):
        volume, stored = truth["volumes"][name], read[file].pixel_array
        assert read[file].PatientID == truth["identity"]["patient_id"]
        if volume["left_out"] is not None:
            continue
        pixels = stored if stored.ndim == 2 else stored[frame - 1]
        source = volume["pixels"]
        seen.add(source["volume"])
        image = np.asarray(nib.load(tmp_path / "nifti" / "PH-0001" / f"{source['volume']}.nii.gz").dataobj)
        wanted = image[:, :, number * volume["n_phases"] + phase].T[::-1].astype(int)
        wanted = wanted * source["multiply"] // source["divide"] + source["add"]
        assert np.array_equal(shown(pixels, volume["display"]), wanted), (name, number, phase)
    assert seen == set(SHORT)


def test_what_a_report_says_for_certain_is_the_truth_of_the_study():
    for study_id in (*canonical_values(), *(f"PH-{number:04d}" for number in range(1, 41))):
        made = free_report(study(2026, study_id), catalogue())
        found = findings(study(2026, study_id).truth)
        assert all(name in made.text for name in made.truth["identities"])
        for one in (one for one in made.truth["findings"] if one["certainty"] == "certain"):
            subtask = catalogue()[one["subtask"]]
            keys = answer(subtask, found)
            assert one["answer"] == [option.text for option in subtask.options if option.key in keys]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["format=dicom"], "vendor= is not given; give vendor=... "),
        (["vendor=ge"], "vendor=: only for DICOM; add format=dicom, or leave it out"),
        (["format=dicom", "vendor=ge", "habit=nobody"], "is unknown; choose one of"),
        (["format=text", "masks=true"], "masks=: only of images"),
        (["format=acdc", "masks=true"], "masks=: format=acdc has the masks of that set"),
    ],
)
def test_the_job_names_what_is_wrong(words, message, tmp_path, capsys):
    assert main(["dataset=phantom_ci", f"out={tmp_path / 'cohort'}", *words]) == 2
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "cohort").exists()
