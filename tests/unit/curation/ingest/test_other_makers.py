"""Traits of other makers, sites and anonymisers; docs/guides/import.md names where each was seen."""

from pathlib import Path

import numpy as np
import pytest
from pydicom.dataset import Dataset
from pydicom.sequence import Sequence

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import dicom_file
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.dicom import read_images
from cardiolens.curation.ingest.frame_records import RejectedError
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.curation.ingest.pixels import pixels_of
from cardiolens.curation.ingest.scan import mixed
from cardiolens.curation.ingest.sequence import kind_by_tags, sequence_witnesses
from cardiolens.curation.ingest.series_stacks import stacks_of
from cardiolens.curation.ingest.words import Words
from tests.unit.curation.ingest.exports import CINE, NORMAL, SHORT_AXIS, header, healthy, save

GE = {"Manufacturer": "GE MEDICAL SYSTEMS", "ImageType": ["ORIGINAL", "PRIMARY", "OTHER"]}
ENHANCED = "1.2.840.10008.5.1.4.1.1.4.1"


def image(folder: Path, **elements):
    (read,) = read_images(Path(str(save(header(**elements), folder / "IM"))))
    return read


def private(group: int, creator: str, element: int, vr: str, value: object):
    """A header whose maker's own element holds a value."""
    dataset = header(**GE)
    dataset.add_new((group, 0x0010), "LO", creator)
    dataset.add_new((group, 0x1000 + element), vr, value)
    return dataset


def first_pass(folder: Path, beats_of: list[int], **elements) -> list:
    """The frames of a first pass of one series with some beats a slice, slice by slice."""
    images = []
    for k, beats in enumerate(beats_of):
        for beat in range(beats):
            told = {
                "SeriesDescription": "perfusion",
                "ImageOrientationPatient": SHORT_AXIS,
                "ImagePositionPatient": list(np.round(-10.0 * k * NORMAL, 4)),
                "InstanceNumber": k * 100 + beat + 1,
                "CardiacNumberOfImages": None,
                **{name: make(k, beat) for name, make in elements.items()},
            }
            images.append(image(folder / f"{k}-{beat}", **GE | told))
    return images


TIMES = {
    "no time at all": {},
    "the series' clock": {"AcquisitionTime": lambda k, beat: "101112"},
    "the slice's trigger time": {"TriggerTime": lambda k, beat: 90.0 + 170 * k},
    "trigger time from the beginning": {"TriggerTime": lambda k, beat: 90.0 + 170 * k + 800 * beat},
}


@pytest.mark.parametrize("times", TIMES.values(), ids=TIMES.keys())
def test_a_first_pass_of_ge_is_no_cine_and_keeps_its_order(tmp_path, times):
    (stack,), left_out = stacks_of(first_pass(tmp_path, [20, 20, 20], **times))
    assert max(stack.witnesses, key=lambda witness: witness.reliability).says == "perfusion"
    assert (stack.n_slices, stack.n_phases, left_out) == (3, 20, [])
    for line in stack.grid:
        assert [each.instance_number for each in line] == sorted(each.instance_number for each in line)


@pytest.mark.parametrize(
    "told",
    [
        {"ScanningSequence": ["GR", "IR"]},
        {"ScanOptions": ["FAST_GEMS", "IR_GEMS"]},
        {"SequenceName": "2dmde"},
        {"SequenceName": "psmde"},
    ],
)
def test_late_enhancement_without_an_inversion_time(tmp_path, told):
    read = image(tmp_path, **GE | {"SeriesDescription": "", "ScanningSequence": "GR"} | told)
    assert [witness.says for witness in sequence_witnesses([read], 1, Words())] == ["lge"]


FLOWS = {
    "GE's velocity": private(0x0019, "GEMS_ACQU_01", 0xCC, "SS", 150),
    "GE's phase image": private(0x0043, "GEMS_PARM_01", 0x2F, "SS", 1),
    "Philips' velocities": private(0x2001, "Philips Imaging DD 001", 0x1A, "FL", [0.0, 0.0, 150.0]),
    "the standard's velocity": header(VelocityEncodingMaximumValue=150.0),
    "Siemens' sequence": header(SequenceName="*fl2d1_v150in"),
    "an image type": header(ImageType=["ORIGINAL", "PRIMARY", "PHASE MAP"]),
}


@pytest.mark.parametrize("dataset", FLOWS.values(), ids=FLOWS.keys())
def test_flow_is_left_out_without_a_name(tmp_path, dataset):
    dataset.SeriesDescription = ""
    (read,) = read_images(Path(str(save(dataset, tmp_path / "IM"))))
    assert kind_by_tags([read], Words()) == "phase contrast"


def test_velocities_of_zero_are_no_flow(tmp_path):
    dataset = private(0x2001, "Philips Imaging DD 001", 0x1A, "FL", [0.0, 0.0, 0.0])
    dataset.VelocityEncodingMinimumValue = 0.0
    (read,) = read_images(Path(str(save(dataset, tmp_path / "IM"))))
    assert kind_by_tags([read], Words()) == ""


def test_numbers_that_were_never_set_are_none(tmp_path):
    read = image(tmp_path, EchoTime="7.23e+75", InversionTimes=[0.0, 1.7976931348623157e308])
    assert (read.pulse.echo, read.pulse.inversion) == (None, 0.0)


def test_frames_of_an_enhanced_file_are_read_and_damaged_ones_decoded_once(tmp_path, monkeypatch):
    """Their records are one element of more than 64 KiB."""
    dataset = header(SOPClassUID=ENHANCED, NumberOfFrames=400)
    dataset.file_meta.MediaStorageSOPClassUID = ENHANCED
    frames = []
    for number in range(400):
        frame = Dataset()
        frame.PlanePositionSequence = Sequence([Dataset()])
        frame.PlanePositionSequence[0].ImagePositionPatient = [0.0, 0.0, float(number // 20)]
        frame.FrameContentSequence = Sequence([Dataset()])
        frame.FrameContentSequence[0].FrameComments = "x" * 200
        frames.append(frame)
    dataset.PerFrameFunctionalGroupsSequence = Sequence(frames)
    dataset.PixelData = np.zeros((400, 32, 32), np.uint16).tobytes()
    images = read_images(Path(str(save(dataset, tmp_path / "IM"))))
    assert len(images) == 400
    decoded = []
    monkeypatch.setattr(dicom_file, "frames_of", lambda dataset: decoded.append(1) or 1 / 0)
    for each in images[:3]:
        with pytest.raises(RejectedError):
            pixels_of(each)
    assert len(decoded) == 1


def people(folder: Path, **second) -> list:
    return [image(folder / "1", DeviceSerialNumber="41001"), image(folder / "2", **second)]


@pytest.mark.parametrize(
    ("second", "why"),
    [
        ({"MagneticFieldStrength": 3.0}, "field strengths"),
        ({"PatientSex": "M"}, "sexes"),
        ({"PatientBirthDate": "19700101"}, "dates of birth"),
        ({"DeviceSerialNumber": "41002"}, "serial numbers"),
        ({"PatientSex": "", "PatientAge": None, "Manufacturer": "", "PatientBirthDate": ""}, ""),
        (GE | {"ImageType": ["DERIVED", "SECONDARY"]}, ""),  # of a workstation
    ],
)
def test_what_one_examination_cannot_have(tmp_path, second, why):
    assert mixed(people(tmp_path, **second)) == (f"several {why}" if why else "")


@pytest.mark.parametrize(
    ("clocks", "why"),
    [
        (("233000", "002000", "011000"), ""),
        (("101500", "170000"), "it lasts 7 hours"),
        (("101500", "111500"), ""),
    ],
)
def test_an_examination_lasts_hours_and_may_pass_midnight(tmp_path, clocks, why):
    assert mixed([image(tmp_path / clock, AcquisitionTime=clock) for clock in clocks]) == why


def test_a_study_for_each_image_is_refused_and_named(tmp_path):
    for number in range(20):
        save(header(StudyInstanceUID=f"1.2.9.{number}", InstanceNumber=number), tmp_path / "a" / f"{number}")
    spec = IngestSpec(source=tmp_path / "a", out=tmp_path / "out", key=tmp_path / "key")
    with pytest.raises(InputError, match=r"20 files is a usable MR image .*patient_unclear"):
        ingest(spec)


def test_one_frame_of_a_cine_is_no_cine(tmp_path):
    told = {"SeriesDescription": "cine_4ch", "ImageOrientationPatient": [0.6, 0.8, 0.0, 0.0, 0.0, -1.0]}
    save(header(**told), tmp_path / "a" / "IM")
    spec = IngestSpec(source=tmp_path / "a", out=tmp_path / "out", key=tmp_path / "key", threshold=0.0)
    ingest(spec)
    assert not list((tmp_path / "out").glob("studies/*"))


def test_two_patients_under_one_study_are_refused_and_named(tmp_path, capsys):
    healthy(tmp_path / "export" / "a")
    healthy(tmp_path / "export" / "b", 910, **GE | CINE)
    spec = IngestSpec(source=tmp_path / "export", out=tmp_path / "out", key=tmp_path / "key")
    assert ingest(spec) == 1
    assert "mixed_study: is of a study of several scanners or persons" in capsys.readouterr().out
    assert not list((tmp_path / "out").glob("studies/*"))
    assert "several manufacturers" in (tmp_path / "out" / "rejects.jsonl").read_text()
