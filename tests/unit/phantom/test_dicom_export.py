"""Exports as a whole: bytes follow from the seed, transfer syntaxes keep pixels, options have effect."""

import hashlib
import importlib.util
import json
import re
from itertools import islice
from pathlib import Path

import numpy as np
import pydicom
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.dicom import dicom_export as exporting
from cardiolens.phantom.dicom import encode, stacks
from cardiolens.phantom.dicom.dicom_export import write_exam
from cardiolens.phantom.dicom.exam import exam_of
from cardiolens.phantom.dicom.patient_identity import drawn_identity
from cardiolens.phantom.dicom.place import Stored, drawn_pose, locate, to_patient
from cardiolens.phantom.dicom.scouts import scouts
from cardiolens.phantom.dicom.series import exam_series
from cardiolens.phantom.dicom.spec import ExportSpec
from cardiolens.phantom.dicom.stacks import Stack
from cardiolens.phantom.draws import Draws
from cardiolens.phantom.planes import Plane, Size, views

JOB = Path(__file__).parents[3] / "jobs" / "make_phantom.py"
SPEC = PhantomSpec(n_sampled=1)
SIZE = Size(pixels=32, spacing_mm=6.4, phases=2, beats=2, layers=1)
UNCOMPRESSED = {"explicit": "1.2.840.10008.1.2.1", "implicit": "1.2.840.10008.1.2"}
COMPRESSED = {"rle": "1.2.840.10008.1.2.5", "jpeg2000": "1.2.840.10008.1.2.4.90"}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Few and small stacks: files take the time."""
    some = {code: views()[code] for code in ("cine_4ch", "lge_2ch", "perf_sax", "t2_sax")}
    monkeypatch.setattr(exporting, "sizes", lambda: {"ci": SIZE})
    monkeypatch.setattr(stacks, "views", lambda: some)
    monkeypatch.setattr(exporting, "scouts", lambda camera: islice(scouts(camera), 2))


def exam(folder, study_id="PH-0001", **options):
    return write_exam(study_id, SPEC, ExportSpec(**options), folder)


def hashes(folder):
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def pixels(folder, truth):
    """Arrays by file, and the transfer syntaxes."""
    files = {file for series in truth["series"] for *_, file in series["images"]}
    read = {file: pydicom.dcmread(folder / file) for file in files}
    syntaxes = {str(made.file_meta.TransferSyntaxUID) for made in read.values()}
    return {file: made.pixel_array for file, made in read.items()}, syntaxes


@pytest.mark.parametrize("vendor", ["ge", "enhanced"])
def test_an_export_is_a_function_of_seed_and_id(vendor, tmp_path):
    options = {"vendor": vendor, "wrong_names": 0.5, "repeats": 0.5}
    first, second = (exam(tmp_path / name, **options) for name in ("a", "b"))
    assert first == second
    assert hashes(tmp_path / "a") == hashes(tmp_path / "b")
    other = write_exam("PH-0001", PhantomSpec(n_sampled=1, seed=7), ExportSpec(**options), tmp_path / "c")
    assert other["identity"]["patient_id"] != first["identity"]["patient_id"]


def test_files_are_those_of_every_machine(tmp_path):
    """Pinned: this changes with the phantom, a dialect or the writer alone."""
    exam(tmp_path, vendor="philips")
    every = json.dumps(hashes(tmp_path), sort_keys=True)
    assert hashlib.sha256(every.encode()).hexdigest()[:16] == "a111a499c0c96b78"


@pytest.mark.filterwarnings("ignore:The number of bytes of compressed")  # noise may take as many by chance
@pytest.mark.parametrize("vendor", ["ge", "enhanced"])
def test_every_transfer_syntax_holds_the_same_pixels(vendor, tmp_path):
    found = {}
    for syntax, uid in (UNCOMPRESSED | COMPRESSED).items():
        truth = exam(tmp_path / syntax, vendor=vendor, transfer_syntax=syntax)
        found[syntax], syntaxes = pixels(tmp_path / syntax, truth)
        assert syntaxes == {uid}
    for arrays in found.values():
        assert arrays.keys() == found["explicit"].keys()
        assert all(np.array_equal(arrays[file], found["explicit"][file]) for file in arrays)


def test_without_an_encoder_the_remedy_is_named(monkeypatch, tmp_path):
    class Missing:
        is_available = False

    monkeypatch.setattr(encode, "get_encoder", lambda _: Missing())
    with pytest.raises(InputError, match=r"transfer_syntax=jpeg2000: .* not installed; install the extra"):
        encode.check_encoder("jpeg2000")
    encode.check_encoder("explicit")


def test_no_repeat_and_no_wrong_name_unless_asked_for(tmp_path):
    truth = exam(tmp_path / "tidy", vendor="siemens")
    assert not any(name.endswith("_try1") for name in truth["volumes"])
    assert {series["name_is"] for series in truth["series"]} == {"right"}
    messy = exam(tmp_path / "messy", vendor="siemens", wrong_names=1, repeats=1)
    assert {series["name_is"] for series in messy["series"]}.isdisjoint({"right", "shared"})
    kept = {name for name, of in messy["volumes"].items() if of["left_out"] is None}
    tries = {name.removesuffix("_try1") for name in messy["volumes"] if name.endswith("_try1")}
    assert kept - tries == {"perf_sax"}


def stack():
    planes = tuple(Plane((0.0, 0.0, 10.0 * z), (1.0, 0.0, 0.0), (0.0, -1.0, 0.0)) for z in range(3))
    return Stack("cine_sax", "cine", "cine", "sax", planes, np.zeros((3, 2, 4, 4), dtype=np.int16))


@pytest.mark.parametrize("vendor", ["siemens", "ge", "philips", "enhanced"])
def test_stored_orientation_and_order_of_slices_vary_between_studies(vendor):
    ways, first = set(), set()
    for number in range(60):
        one = exam_of("PH-0001", f"{number}", ExportSpec(vendor=vendor), SIZE)
        ways.add(one.stored(stack()))
        first.add(min(exam_series(one, [stack()])[0].images, key=lambda image: image.acquired_s).slice)
    assert len(ways) == 8
    assert first == {0, 2}


@given(transpose=st.booleans(), flip_rows=st.booleans(), flip_cols=st.booleans(), seed=st.text(max_size=5))
def test_a_stored_matrix_and_its_header_agree_whichever_way_it_lies(transpose, flip_rows, flip_cols, seed):
    """Whatever the orientation, a pixel's value and its place in the patient stay together."""
    (plane, *_), patient = stack().planes, to_patient(drawn_pose(Draws(seed, 0)))
    shown = np.arange(16, dtype=np.int16).reshape(4, 4)
    way = Stored(transpose, flip_rows, flip_cols)
    plain = locate(plane, patient, 4, 2.0, Stored(False, False, False))
    turned, at = way.stored(shown), locate(plane, patient, 4, 2.0, way)
    for value in range(16):
        places = []
        for location, pixels in ((plain, shown), (at, turned)):
            (i,), (j,) = np.nonzero(pixels == value)
            row, column = np.array(location.along_row), np.array(location.along_column)
            assert np.cross(row, column) @ np.cross(row, column) == pytest.approx(1, abs=1e-6)
            places.append(np.array(location.position) + 2.0 * (j * row + i * column))
        assert places[0] == pytest.approx(places[1], abs=1e-6)


def test_identities_differ_between_studies_and_are_no_common_words():
    who = [drawn_identity(f"{number}") for number in range(200)]
    assert len({one.patient_id for one in who}) == len({one.accession for one in who}) == 200
    assert all(len(one.accession) <= 16 and len(one.phone) <= 16 for one in who)
    assert all(one.birth_date < one.study_date for one in who)
    for one in who:
        for text in (one.name, one.institution, one.comment, one.referrer, one.address):
            text.encode("latin-1")


def job():
    spec = importlib.util.spec_from_file_location("make_phantom_job", JOB)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.main


def test_the_job_writes_an_export_and_its_truth_beside_it(tmp_path, capsys):
    out = tmp_path / "cohort"
    words = ["dataset=phantom_ci", "dataset.phantom.n_sampled=2", f"out={out}"]
    assert job()([*words, "format=dicom", "vendor=enhanced", "wrong_names=0.33"]) == 0, (
        capsys.readouterr().err
    )
    assert sorted(path.name for path in out.iterdir()) == ["export", "truth.jsonl"]
    records = [json.loads(line) for line in (out / "truth.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [record["study_id"] for record in records] == ["PH-0001", "PH-0002"]
    folders = {record["folder"] for record in records}
    assert {path.name for path in (out / "export").iterdir()} == folders


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["format=dicom"], "vendor= is not given; give vendor=... "),
        (["format=tiff"], "format: Input should be 'nifti', 'dicom', 'text', 'acdc', .*, got 'tiff'"),
        (["vendor=ge"], "vendor=: only for DICOM; add format=dicom, or leave it out"),
        (["format=dicom", "vendor=ge", "masks=true"], "masks=true: scanners write no masks"),
        (["format=dicom", "vendor=ge", "repeats=often"], "repeats: .* got 'often'"),
    ],
)
def test_the_job_names_what_is_wrong(words, message, tmp_path, capsys):
    assert job()(["dataset=phantom_ci", f"out={tmp_path / 'cohort'}", *words]) == 2
    error = capsys.readouterr().err
    assert re.search(message, error), error
    assert not (tmp_path / "cohort").exists()
