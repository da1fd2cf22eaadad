"""Malformed and strange files: each is left out with a named reason, and costs the others nothing."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from pydicom.dataset import Dataset
from pydicom.encaps import encapsulate
from pydicom.sequence import Sequence
from pydicom.uid import JPEG2000Lossless, generate_uid

from cardiolens.base.errors import InputError
from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest import import_run, write
from cardiolens.curation.ingest.import_run import ingest
from tests.unit.curation.ingest.exports import (
    CINE,
    CURRENT,
    LGE,
    NORMAL,
    SHORT_AXIS,
    builds,
    header,
    healthy,
    rejects,
    save,
)


def one(**elements) -> Callable[[Path], None]:
    """A case of a single image whose header differs in some elements."""
    return lambda folder: save(header(**elements), folder / "case" / "IM1") and None


def raw(content: bytes, name: str = "IM1") -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        (folder / "case").mkdir()
        (folder / "case" / name).write_bytes(content)

    return write


def cut(fraction: float) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        path = save(header(**LGE), folder / "case" / "IM1")
        content = path.read_bytes()
        path.write_bytes(content[: int(len(content) * fraction)])

    return write


def compressed(syntax: str, payload: bytes) -> Callable[[Path], None]:
    def write(folder: Path) -> None:
        dataset = header(**LGE)
        dataset.file_meta.TransferSyntaxUID = syntax
        dataset.PixelData = encapsulate([payload])
        dataset["PixelData"].is_undefined_length = True
        save(dataset, folder / "case" / "IM1")

    return write


def link_out(folder: Path) -> None:
    (folder / "case").mkdir()
    os.symlink("/etc/hostname", folder / "case" / "IM1")


def pipe(folder: Path) -> None:
    (folder / "case").mkdir()
    os.mkfifo(folder / "case" / "IM1")


def multi_frame(**elements) -> Callable[[Path], None]:
    """An enhanced image whose functional groups contradict its number of frames, or lack positions."""

    def write(folder: Path) -> None:
        dataset = header(SOPClassUID="1.2.840.10008.5.1.4.1.1.4.1", NumberOfFrames=2, **elements)
        dataset.PixelData = np.zeros((2, 32, 32), np.uint16).tobytes()
        save(dataset, folder / "case" / "IM1")

    return write


def duplicate(folder: Path) -> None:
    uid = generate_uid()
    for name in ("IM1", "IM2"):
        save(header(SOPInstanceUID=uid, **LGE), folder / "case" / name)


def slices(folder: Path, place: Callable[[int], list[float]], orientation=None, phases=1, **elements) -> None:
    for k in range(4):
        for phase in range(phases):
            told = {"TriggerTime": phase * 60.0} if phases > 1 else {}
            dataset = header(
                ImagePositionPatient=place(k),
                ImageOrientationPatient=orientation or SHORT_AXIS,
                InstanceNumber=k * phases + phase + 1,
                **told | elements,
            )
            save(dataset, folder / "case" / f"IM{k}_{phase}")


def along(k: float) -> list[float]:
    return [round(float(value), 4) for value in -NORMAL * 8.0 * k]


def three_planes(folder: Path) -> None:
    for k, plane in enumerate(([1, 0, 0, 0, 1, 0], [1, 0, 0, 0, 0, -1], [0, 1, 0, 0, 0, -1])):
        save(header(ImageOrientationPatient=plane, SeriesDescription="x"), folder / "case" / f"IM{k}")


def times_of_inversion(folder: Path) -> None:
    for k in range(8):
        dataset = header(
            InversionTime=150.0 + 30 * k, ImageOrientationPatient=SHORT_AXIS, InstanceNumber=k + 1
        )
        save(dataset, folder / "case" / f"IM{k}")


def without_order(folder: Path) -> None:
    for k in range(9):
        dataset = header(InstanceNumber=1, ImageOrientationPatient=SHORT_AXIS, **CINE)
        save(dataset, folder / "case" / f"IM{k}")


def doubled_slice(folder: Path) -> None:
    slices(folder, lambda k: along(min(k, 2)), **LGE)


def short_slice(folder: Path) -> None:
    slices(folder, along, phases=9, **CINE)
    os.unlink(folder / "case" / "IM3_8")


def without_pixels(folder: Path) -> None:
    dataset = header(ImageOrientationPatient=SHORT_AXIS, **LGE)
    del dataset.PixelData
    save(dataset, folder / "case" / "IM1")


@pytest.fixture(scope="module")
def imported(tmp_path_factory) -> tuple[Path, dict[str, list[str]]]:
    """All cases in one export beside a healthy study: the output, and the reasons by case."""
    root = tmp_path_factory.mktemp("bad")
    numbered = {case: f"{number:03d}" for number, case in enumerate(CASES)}
    for case, (made, _) in CASES.items():
        folder = root / "export" / numbered[case]
        folder.mkdir(parents=True)
        CURRENT["study"] = f"1.2.3.{int(numbered[case]) + 10}"
        made(folder)
    CURRENT["study"] = "1.2.3.4"
    healthy(root / "export" / "healthy")
    before = fingerprint(root / "export")
    ingest(IngestSpec(source=root / "export", out=root / "out", links=root / "links.jsonl"))
    assert fingerprint(root / "export") == before, "nothing that was given is touched"
    links = [json.loads(line) for line in (root / "links.jsonl").read_text().splitlines()]
    names = {line["file"]: line["name"] for line in links if "file" in line}
    reasons: dict[str, list[str]] = {}
    for line in rejects(root / "out"):
        reasons.setdefault(names[line["file"]][:3], []).append(line["reason"])
    return root, {case: reasons.get(number, []) for case, number in numbered.items()}


def fingerprint(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.lstat().st_size, path.lstat().st_mtime_ns) for path in folder.rglob("*")}


BLANK = np.zeros((32, 32), np.uint16).tobytes()

CASES: dict[str, tuple[Callable[[Path], None], str]] = {
    # files
    "empty": (raw(b""), "unreadable"),
    "text": (raw(b"dear radiologist", "readme.txt"), "no_image"),
    "mark and noise": (raw(b"\0" * 128 + b"DICM" + bytes(range(256)) * 4), "broken_file"),
    "header cut in the middle": (cut(0.05), "broken_file"),
    "pixels cut": (cut(0.7), "broken_file"),
    "DICOMDIR": (raw(b"\0" * 128 + b"DICM", "DICOMDIR"), "housekeeping"),
    "Apple double": (raw(b"x", "._IM1"), "housekeeping"),
    "nifti": (raw(b"\x5c\x01\0\0" + b"\0" * 400, "a.nii"), "broken_file"),
    "tar": (raw(b"x" * 600, "a.tar"), "packed"),
    "link to a file": (link_out, "unreadable"),
    "pipe": (pipe, "unreadable"),
    # archives
    "zip by name only": (raw(b"no zip", "a.zip"), "packed"),
    "zip without a name": (raw(b"PK\3\4" + b"x" * 60), "no_image"),
    # kinds of objects
    "CT": (one(Modality="CT", SOPClassUID="1.2.840.10008.5.1.4.1.1.2"), "no_image"),
    "no modality": (one(Modality=None), "no_image"),
    "secondary capture": (one(SOPClassUID="1.2.840.10008.5.1.4.1.1.7"), "no_image"),
    "segmentation": (one(SOPClassUID="1.2.840.10008.5.1.4.1.1.66.4", Modality="SEG"), "no_image"),
    "spectroscopy": (one(SOPClassUID="1.2.840.10008.5.1.4.1.1.4.2"), "no_image"),
    # headers of images
    "no study": (one(StudyInstanceUID=None), "patient_unclear"),
    "no rows": (one(Rows=None, Columns=None, PixelData=b""), "no_image"),
    "no pixel data": (without_pixels, "no_image"),
    "colour": (one(SamplesPerPixel=3, PhotometricInterpretation="RGB", PixelData=b"\0" * 6144), "no_image"),
    "high values dark": (one(PhotometricInterpretation="MONOCHROME1"), "no_image"),
    "huge": (one(Rows=60000, Columns=60000, PixelData=b"\0\0"), "bad_shape"),
    "no bits": (one(BitsAllocated=None), "broken_file"),
    "high bit elsewhere": (one(HighBit=15), "broken_file"),
    "no position": (one(ImagePositionPatient=None), "no_position"),
    "directions not square": (one(ImageOrientationPatient=[1, 0, 0, 0.9, 0.436, 0]), "no_position"),
    "another planet": (one(ImagePositionPatient=[0.0, 0.0, 1e9]), "no_position"),
    "no spacing": (one(PixelSpacing=None), "no_spacing"),
    "spacing of a millionth": (one(PixelSpacing=["1e-9", "1e-9"]), "no_spacing"),
    "slope of zero": (one(RescaleSlope=0.0, RescaleIntercept=0.0), "broken_file"),
    "burned-in text": (one(BurnedInAnnotation="YES"), "burned_in_text"),
    "same instance twice": (duplicate, "duplicate"),
    "records and frames differ": (
        multi_frame(PerFrameFunctionalGroupsSequence=Sequence([Dataset()])),
        "broken_file",
    ),
    "frame records without planes": (
        multi_frame(
            PerFrameFunctionalGroupsSequence=Sequence([Dataset(), Dataset()]), ImageOrientationPatient=None
        ),
        "no_position",
    ),
    # pixels
    "noise as JPEG 2000": (compressed(JPEG2000Lossless, b"\xff\x4f\xff\x51" + b"\0" * 60), "broken_file"),
    "one grey value": (one(PixelData=BLANK, **LGE), "broken_file"),
    # series
    "localizer by type": (one(ImageType=["ORIGINAL", "PRIMARY", "M", "LOCALIZER"]), "other_image"),
    "localizer by planes": (three_planes, "other_image"),
    "scout": (one(SeriesDescription="HASTE survey"), "other_image"),
    "TI scout by times": (times_of_inversion, "other_image"),
    "flow by name": (one(SeriesDescription="fl2d_pc QFlow"), "other_image"),
    "tagging": (one(SeriesDescription="cine grid tagging"), "other_image"),
    "map by type": (one(ImageType=["DERIVED", "PRIMARY", "T1 MAP"]), "other_image"),
    "projection": (one(ImageType=["DERIVED", "SECONDARY", "PROJECTION IMAGE"]), "other_image"),
    "right ventricle": (
        one(SeriesDescription="cine RVOT", ImageOrientationPatient=[0, 1, 0, 0, 0, -1]),
        "other_view",
    ),
    "no sequence": (one(SeriesDescription=""), "other_sequence"),
    "axial": (one(SeriesDescription="", **LGE), "other_view"),
    "slice acquired twice": (doubled_slice, "repeat"),
    "slice with a phase too few": (short_slice, "incomplete"),
    "nothing orders the phases": (without_order, "incomplete"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_is_left_out_with_its_reason(imported, case):
    assert CASES[case][1] in imported[1][case]


def test_nothing_of_a_healthy_study_is_lost_beside_bad_files(imported):
    manifests = [json.loads(path.read_text()) for path in (imported[0] / "out").glob("studies/*/study.json")]
    (volume,) = [v for manifest in manifests for v in manifest["volumes"] if v["shape"] == [32, 32, 6, 8]]
    assert (volume["volume_id"], volume["ed_phase"], volume["es_phase"]) == ("cine_sax", 0, 4)


def test_every_file_is_in_a_volume_or_has_one_reason(imported):
    root, _ = imported
    lines = rejects(root / "out")
    assert len(lines) == len({(line["file"], line["frame"]) for line in lines}), "one reason a frame"
    manifests = [json.loads(path.read_text()) for path in (root / "out").glob("studies/*/study.json")]
    frames = sum(int(np.prod(v["shape"][2:])) for manifest in manifests for v in manifest["volumes"])
    folders = {path for path in (root / "export").rglob("*") if path.is_dir() and not path.is_symlink()}
    files = sum(1 for path in (root / "export").rglob("*") if path not in folders)
    assert frames + len(lines) == files


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    healthy(tmp_path / "export")
    (tmp_path / "export" / "closed").mkdir()
    scandir = os.scandir

    def refuse(path):
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out"))
    [line] = rejects(tmp_path / "out")
    assert line["reason"] == "unreadable"
    assert "a folder that cannot be read: Permission denied" in line["message"]


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda folder: None, "cannot be read"),
        (lambda folder: folder.mkdir(), "holds no files"),
        (lambda folder: raw(b"x")(folder.mkdir() or folder), "none of its 1 files is a usable MR image"),
    ],
)
def test_a_source_without_images_is_refused(tmp_path, prepare, words):
    prepare(tmp_path / "export")
    with pytest.raises(InputError, match=words):
        ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out"))


def test_a_study_that_cannot_be_written_costs_the_others_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for patient in ("P-1", "P-2"):
        healthy(tmp_path / "export" / patient, PatientID=patient, StudyInstanceUID=generate_uid())
    sound, tried = write._write_volume, []

    def fail_once(*given):
        tried.append(given)
        if len(tried) == 1:
            raise ZeroDivisionError("nobody foresaw this")
        return sound(*given)

    monkeypatch.setattr(write, "_write_volume", fail_once)
    monkeypatch.setattr(import_run, "spread", lambda function, items, **_: map(function, items))
    assert ingest(IngestSpec(source=tmp_path / "export", out=tmp_path / "out")) == 1
    assert sorted(len(build["volumes"]) for build in builds(tmp_path / "out")) == [0, 1]
    (failed,) = [build for build in builds(tmp_path / "out") if not build["volumes"]]
    assert failed["left_out"] == {"failed": 48}
    assert len(list((tmp_path / "out" / "studies").iterdir())) == 1
