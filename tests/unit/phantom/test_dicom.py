"""The phantom as DICOM: pixels, planes and order are the NIfTI cohort's, by the truth beside the export."""

import itertools
import json
import re
from collections import Counter
from functools import lru_cache

import nibabel as nib
import numpy as np
import pydicom
import pytest
from pydantic import ValidationError
from pydicom.datadict import dictionary_VR

from cardiolens.config.base import describe
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import phantom_cohort as cohort
from cardiolens.phantom.dicom import dicom_export as exporting
from cardiolens.phantom.dicom.dialect import dialect
from cardiolens.phantom.dicom.series_names import series_name
from cardiolens.phantom.dicom.spec import ExportSpec
from cardiolens.phantom.planes import Size, views

VENDORS = ("siemens", "ge", "philips", "enhanced")
SPEC = PhantomSpec(n_sampled=1)
SIZE = Size(pixels=32, spacing_mm=6.4, phases=5, beats=6, layers=2)  # small: files take the time
CLASSIC = (
    *("SpecificCharacterSet", "ImageType", "SOPClassUID", "SOPInstanceUID", "StudyDate", "StudyTime"),
    *("AccessionNumber", "Modality", "Manufacturer", "ReferringPhysicianName", "PatientName", "PatientID"),
    *("PatientBirthDate", "PatientSex", "ScanningSequence", "SequenceVariant", "ScanOptions", "TriggerTime"),
    *("MRAcquisitionType", "SliceThickness", "RepetitionTime", "EchoTime", "EchoTrainLength", "StudyID"),
    *("PatientPosition", "StudyInstanceUID", "SeriesInstanceUID", "SeriesNumber", "InstanceNumber"),
    *("ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing", "FrameOfReferenceUID"),
    *("PositionReferenceIndicator", "SamplesPerPixel", "PhotometricInterpretation", "Rows", "Columns"),
    *("BitsAllocated", "BitsStored", "HighBit", "PixelRepresentation", "PixelData"),
)
ENHANCED = (
    *(name for name in CLASSIC if dictionary_VR(name) != "SQ" and name not in ("ScanningSequence",)),
    *("NumberOfFrames", "SharedFunctionalGroupsSequence", "PerFrameFunctionalGroupsSequence"),
    *("DimensionOrganizationSequence", "DimensionIndexSequence", "AcquisitionDateTime", "ContentDate"),
    *("PixelPresentation", "VolumetricProperties", "VolumeBasedCalculationTechnique", "ContentTime"),
    *("ComplexImageComponent", "AcquisitionContrast", "ResonantNucleus", "KSpaceFiltering"),
    *(
        "CardiacSynchronizationTechnique",
        "ContentQualification",
        "BurnedInAnnotation",
        "PresentationLUTShape",
    ),
    *("DeviceSerialNumber", "SoftwareVersions", "ManufacturerModelName", "LossyImageCompression"),
)
ELSEWHERE = (  # in functional groups of a multi-frame image
    *("SequenceVariant", "ScanOptions", "TriggerTime", "SliceThickness", "RepetitionTime", "EchoTime"),
    *("EchoTrainLength", "ImagePositionPatient", "ImageOrientationPatient", "PixelSpacing"),
)
FRAME = (
    *("FrameContentSequence", "PlanePositionSequence", "CardiacSynchronizationSequence"),
    *("MRImageFrameTypeSequence", "MRModifierSequence", "PixelValueTransformationSequence"),
    "FrameVOILUTSequence",
)


class Export:
    """One exported study with its truth, its files read once."""

    def __init__(self, folder):
        self.folder = folder / "export"
        (line,) = (folder / "truth.jsonl").read_text(encoding="utf-8").splitlines()
        self.truth = json.loads(line)
        self.read = lru_cache(maxsize=None)(lambda name: pydicom.dcmread(self.folder / name))

    def images(self):
        """Every image: its series, volume, slice and phase in the truth, its dataset and frame number."""
        for series in self.truth["series"]:
            for name, number, phase, sop, frame, file in series["images"]:
                made = self.read(file)
                assert made.SOPInstanceUID == sop
                yield series, name, number, phase, made, frame

    def kept(self):
        for series, name, number, phase, made, frame in self.images():
            volume = self.truth["volumes"][name]
            if volume["left_out"] is None:
                yield series, name, (number, phase), volume, matrix(made, frame), plane(made, frame)


def matrix(made, frame):
    """The stored integers, without any rescaling."""
    pixels = made.pixel_array
    return pixels if frame is None or pixels.ndim == 2 else pixels[frame - 1]


def plane(made, frame):
    """Position of the first pixel and steps along a row and a column, in the patient's LPS+ millimetres."""
    if frame is None:
        position, cosines, spacing = (
            made.ImagePositionPatient,
            made.ImageOrientationPatient,
            made.PixelSpacing,
        )
    else:
        own, shared = made.PerFrameFunctionalGroupsSequence[frame - 1], made.SharedFunctionalGroupsSequence[0]
        turned = shared if "PlaneOrientationSequence" in shared else own
        position = own.PlanePositionSequence[0].ImagePositionPatient
        cosines = turned.PlaneOrientationSequence[0].ImageOrientationPatient
        spacing = shared.PixelMeasuresSequence[0].PixelSpacing
    position, cosines = np.array(position, float), np.array(cosines, float)
    return position, cosines[:3] * float(spacing[1]), cosines[3:] * float(spacing[0])


def shown(pixels, display):
    """A stored matrix as displayed, by the steps of the truth."""
    pixels = pixels.T if display["transpose"] else pixels
    pixels = pixels[::-1] if display["flip_rows"] else pixels
    return pixels[:, ::-1] if display["flip_cols"] else pixels


@pytest.fixture(scope="module", autouse=True)
def small():
    with pytest.MonkeyPatch.context() as patch:
        for module in (cohort, exporting):
            patch.setattr(module, "sizes", lambda: {"ci": SIZE})
        yield


@pytest.fixture(scope="module")
def nifti(tmp_path_factory):
    folder = tmp_path_factory.mktemp("nifti")
    cohort.write_study("PH-0001", SPEC, folder)
    return {code: nib.load(folder / "PH-0001" / f"{code}.nii.gz") for code in views()}


@pytest.fixture(scope="module", params=VENDORS)
def export(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "phantom"
    exporting.make_export(SPEC, ExportSpec(vendor=request.param, repeats=0.5, wrong_names=0.33), folder)
    return Export(folder)


@pytest.mark.full
def test_pixels_are_those_of_the_nifti_cohort(export, nifti):
    """Every slice and phase of every view, in the order that the truth tells."""
    arrays = {code: np.asarray(image.dataobj).astype(int) for code, image in nifti.items()}
    seen = Counter()
    for _, name, (number, phase), volume, pixels, _ in export.kept():
        of = volume["pixels"]
        stored = arrays[of["volume"]][:, :, number * volume["n_phases"] + phase]
        wanted = stored.T[::-1] * of["multiply"] // of["divide"] + of["add"]
        assert np.array_equal(shown(pixels, volume["display"]), wanted), (name, number, phase)
        seen[name, of["volume"]] += 1
    assert {source for _, source in seen} == set(views())
    assert all(count == arrays[source].shape[2] for (_, source), count in seen.items())


def test_planes_are_those_of_the_nifti_cohort_in_a_body_that_lies_elsewhere(export, nifti):
    pose, flip = np.array(export.truth["pose"]), np.array([-1, -1, 1])
    places = np.arange(SIZE.pixels**2).reshape(SIZE.pixels, SIZE.pixels)
    for _, _, (number, _), volume, pixels, (position, row, column) in export.kept():
        assert pixels.shape == places.shape
        where = shown(places, volume["display"])
        for down, right in ((0, 0), (31, 0), (10, 22)):
            i, j = divmod(int(where[down, right]), SIZE.pixels)
            affine = nifti[volume["pixels"]["volume"]].affine
            wanted = pose @ affine @ [right, 31 - down, number, 1]
            assert (position + j * row + i * column) * flip == pytest.approx(wanted[:3], abs=5e-3)


def test_a_short_axis_looks_up_from_the_apex_in_the_patient(export):
    """The apex points left, forward and down, wherever the heart lies and however matrices are stored."""
    base, apex = {}, {}
    for _, name, (number, _), volume, pixels, (position, row, column) in export.kept():
        centre = position + (pixels.shape[1] - 1) / 2 * row + (pixels.shape[0] - 1) / 2 * column
        if number == 0:
            base[name] = centre
        if number == volume["n_slices"] - 1:
            apex[name] = centre
    for name in ("cine_sax", "lge_sax", "perf_sax", "t2_sax"):
        left, back, up = apex[name] - base[name]
        assert left > 0 > back
        assert up < 0


def test_uids_are_unique_and_one_study_has_one_patient(export):
    files = {file for series in export.truth["series"] for *_, file in series["images"]}
    assert {
        path.relative_to(export.folder).as_posix() for path in export.folder.rglob("*") if path.is_file()
    } == files
    read = [export.read(file) for file in sorted(files)]
    assert len({made.SOPInstanceUID for made in read}) == len(read)
    assert len({made.SeriesInstanceUID for made in read}) == len(export.truth["series"])
    assert len({(made.StudyInstanceUID, made.PatientID, made.FrameOfReferenceUID) for made in read}) == 1
    places = [
        (series["series_uid"], made.SOPInstanceUID, frame) for series, *_, made, frame in export.images()
    ]
    assert len(set(places)) == len(places)


def test_required_attributes_are_there(export):
    multi = export.truth["vendor"] == "enhanced"
    required = [name for name in ENHANCED if name not in ELSEWHERE] if multi else CLASSIC
    for series in export.truth["series"]:
        made = export.read(series["images"][0][-1])
        assert [name for name in required if name not in made] == []
        assert made.BitsAllocated == 16
        assert made.HighBit == made.BitsStored - 1
        assert made.pixel_array.dtype == (np.int16 if made.PixelRepresentation else np.uint16)
        if multi:
            groups = made.PerFrameFunctionalGroupsSequence
            assert len(groups) == made.NumberOfFrames == len(series["images"])
            assert all(name in group for group in groups for name in FRAME)


def test_indices_of_frames_are_unique_within_their_dimensions(export):
    if export.truth["vendor"] != "enhanced":
        assert all(frame is None for *_, frame in export.images())
        return
    for series in export.truth["series"]:
        made = export.read(series["images"][0][-1])
        indices = [
            tuple(group.FrameContentSequence[0].DimensionIndexValues)
            for group in made.PerFrameFunctionalGroupsSequence
        ]
        assert len(set(indices)) == len(indices)
        assert {len(index) for index in indices} == {len(made.DimensionIndexSequence)}


def test_phases_of_a_slice_follow_each_other_in_time(export):
    """By trigger within a cine's slice, by time of acquisition in a first pass; RR differs between slices."""
    times, rr = {}, set()
    for _, name, number, phase, made, frame in export.images():
        of = export.truth["volumes"][name]
        if of["sequence"] not in ("cine", "perfusion"):
            continue
        if frame is None:
            trigger, clock = float(made.TriggerTime), float(made.AcquisitionTime)
            interval = float(made.NominalInterval)
        else:
            group = made.PerFrameFunctionalGroupsSequence[frame - 1]
            beat = group.CardiacSynchronizationSequence[0]
            trigger, interval = beat.NominalCardiacTriggerDelayTime, beat.RRIntervalTimeNominal
            clock = float(group.FrameContentSequence[0].FrameAcquisitionDateTime[8:])
        times.setdefault((name, number), []).append((phase, trigger if of["sequence"] == "cine" else clock))
        if name == "cine_sax":
            rr.add(interval)
            assert trigger < interval
    assert len(rr) == 10
    for seen in times.values():
        values = [time for _, time in sorted(seen)]
        assert all(early < late for early, late in itertools.pairwise(values))


def test_what_is_no_volume_of_the_study_says_why(export):
    volumes = export.truth["volumes"]
    assert {of["left_out"] for of in volumes.values()} >= {
        *("localizer", "anatomy: axial stack", "planning scout", "right ventricular view"),
        *("phase contrast", "raw images of a map", "map", "TI scout", "done again: the later one counts"),
    }
    for series in export.truth["series"]:
        reasons = {volumes[name]["left_out"] for name in series["volumes"]}
        assert reasons == {series["left_out"]}


def test_a_repeat_is_earlier_than_the_one_that_counts(export):
    number = {}
    for series, name, slice_, *_ in export.images():
        number.setdefault((name, slice_), series["number"])
    tries = [(name, slice_) for name, slice_ in number if name.endswith("_try1")]
    assert tries
    for name, slice_ in tries:
        assert number[name, slice_] < number[name.removesuffix("_try1"), slice_]


def test_every_file_holds_the_planted_identity(export):
    """Standard attributes, sequences, private elements and, at some makers, the path."""
    who = export.truth["identity"]
    for file in {file for series in export.truth["series"] for *_, file in series["images"]}:
        made, content = export.read(file), (export.folder / file).read_bytes()
        assert (str(made.PatientName), made.PatientID) == (who["name"], who["patient_id"])
        assert (made.AccessionNumber, made.InstitutionName) == (who["accession"], who["institution"])
        assert made.PatientComments == made.ImageComments == who["comment"]
        assert who["patient_id"].encode() in content
        private = b"".join(
            element.value if isinstance(element.value, bytes) else str(element.value).encode()
            for element in made
            if element.tag.is_private
        )
        assert who["patient_id"].encode() in private
    if export.truth["vendor"] in ("siemens", "ge"):
        assert who["patient_id"] in export.truth["folder"]


def test_habits_of_makers(export):
    series = export.truth["series"]
    short = [one for one in series if "cine_sax" in one["volumes"]]
    made = export.read(short[0]["images"][0][-1])
    order = [(number, phase) for _, number, phase, *_ in short[0]["images"]]
    by_slice = sorted(order, key=lambda at: (short[0]["images"][0][1] != at[0], at))
    match export.truth["vendor"]:
        case "siemens":
            assert len(short) == 10
            assert all(len(one["images"]) == 5 for one in short)
            assert made.SequenceName.startswith("*tfi2d1")
        case "ge":
            assert len(short) == 1
            assert made.PixelRepresentation == 1
            assert [number for number, _ in order[:5]] == [order[0][0]] * 5
            assert (made.CardiacNumberOfImages, made.ImagesInAcquisition) == (5, 50)
        case "philips":
            assert len(short) == 1
            assert made["RescaleSlope"].value > 0
            assert made[0x2001, 0x0010].value == "Philips Imaging DD 001"
        case "enhanced":
            assert made.NumberOfFrames == 50 / len(short)
            assert order not in (by_slice, sorted(order), sorted(order)[::-1])


def test_wrong_names_are_a_share_of_the_acquisitions_and_the_truth_tells_them(tmp_path):
    for vendor in VENDORS:
        of, states = dialect(vendor), Counter()
        for number in range(300):
            right = series_name(of, ("cine", "4ch"), f"{number}", "cine_4ch", wrong=0.0, number=None)
            name = series_name(of, ("cine", "4ch"), f"{number}", "cine_4ch", wrong=0.33, number=None)
            states[name.state] += 1
            assert right.state == "right"
            assert right.description in of.names["cine"]["4ch"]
            assert (name.description == right.description) == (name.state == "right")
            if name.state == "empty":
                assert not name.description
                assert not name.protocol
        assert 0.26 < 1 - states["right"] / 300 < 0.40
        assert set(states) == {"right", "empty", "generic", "other_view"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({}, "vendor: Field required"),
        ({"vendor": "toshiba"}, "vendor: .*'siemens', 'ge', 'philips' or 'enhanced'.*got 'toshiba'"),
        ({"vendor": "ge", "wrong_names": "2"}, "wrong_names: .*less than or equal to 1.*got '2'"),
        ({"vendor": "ge", "transfer_syntax": "jpeg_lossless"}, "transfer_syntax: .*'explicit'.*'rle'"),
    ],
)
def test_an_option_that_is_wrong_is_named_with_the_legal_ones(words, message):
    with pytest.raises(ValidationError) as raised:
        ExportSpec.model_validate(words)
    assert re.search(message, describe(raised.value))
