"""What the phantom writes: volumes, masks, evidence slices, quantities, reports; and the words of its job."""

import gzip
import hashlib
import json
import re
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.compose import read_spec
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom import codes
from cardiolens.phantom.parameters import canonical_values
from cardiolens.phantom.phantom_cohort import LEAST_MM2, make_cohort, write_study
from cardiolens.phantom.planes import views
from cardiolens.phantom.roster import catalogue, study
from cardiolens.protocol.tasks.catalogue import load_catalogue
from cardiolens.protocol.tasks.instantiate import answer
from cardiolens.protocol.tasks.truth import findings
from cardiolens.study.nifti import parse_header, read_file, voxels
from cardiolens.workflow.steps.prepare_studies import is_prepared, prepare_sweep
from jobs.make_phantom import main
from tests.support.free_text.free_report import free_report

PINNED = {
    "cine_4ch.nii.gz": "feb990417dca4c3d",
    "lge_sax.nii.gz": "3b18102ca2cff69b",
    "perf_sax.nii.gz": "04a585fa842feb68",
    "masks/cine_3ch.nii.gz": "d6ab01b3cfc6d504",
}
SPEC = PhantomSpec(canonical=("PH-NORMAL",), n_sampled=1, also=("masks",))
LESIONS = PhantomSpec(canonical=("PH-ICM-LAD",), also=("masks",))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cohort") / "phantom"
    make_cohort(SPEC, folder)
    return folder


def content(path):
    return gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()


def hashes(study):
    return {
        path.relative_to(study).as_posix(): hashlib.sha256(content(path)).hexdigest()
        for path in sorted(study.rglob("*"))
        if path.is_file()
    }


@pytest.mark.parametrize("asked", [prepare_sweep, is_prepared])
def test_a_cohort_made_with_other_options_is_not_taken_for_what_is_asked(made, asked):
    where = [f"dataset.studies={made}/studies", f"dataset.questions={made}/questions.jsonl"]
    spec = read_spec(["dataset=phantom_ci", *where, "dataset.phantom.difficulty=hard"])
    with pytest.raises(InputError, match=r"was made with .*n_sampled=1 .*difficulty=standard"):
        asked(spec)


def test_volumes_are_what_their_manifest_says(made):
    for folder in (made / "studies").iterdir():
        manifest = json.loads((folder / "study.json").read_text())
        assert {entry["volume_id"] for entry in manifest["volumes"]} == set(views())
        for entry in manifest["volumes"]:
            image = nib.load(folder / entry["path"])
            pixels = np.asarray(image.dataobj)
            assert pixels.dtype == np.int16
            assert 0 <= pixels.min() < pixels.max() <= 4095
            assert list(pixels.shape) == entry["shape"]
            assert entry["shape"][2] == entry["layout"]["n_slices"] * entry["layout"]["n_phases"]
            assert np.linalg.norm(image.affine[:3, :3], axis=0) == pytest.approx(
                entry["spacing_mm"], abs=1e-4
            )
            assert hashlib.sha256((folder / entry["path"]).read_bytes()).hexdigest() == entry["sha256"]
            mask = nib.load(folder / entry["mask"]["path"])
            assert mask.shape == image.shape
            assert mask.affine == pytest.approx(image.affine)


def test_the_affine_agrees_with_the_display(made):
    """Short axis: image right is about the patient's left, image up about superior or anterior (1.4)."""
    study = made / "studies" / "PH-NORMAL"
    entry = json.loads((study / "study.json").read_text())["volumes"][0]
    assert entry["display_transform"] == {"transpose": True, "flip_rows": True, "flip_cols": False}
    affine = nib.load(study / entry["path"]).affine
    right, up = affine[:3, 0], affine[:3, 1]  # stored column, and stored row counted from the bottom
    assert right[0] < -0.5 * np.linalg.norm(right)
    assert max(up[1], up[2]) > 0.5 * np.linalg.norm(up)
    shown = np.asarray(nib.load(study / "masks" / "cine_sax.nii.gz").dataobj)[:, :, 12 * 4].T[::-1]
    columns = {name: np.nonzero(shown == code)[1].mean() for name, code in (("rv", 22), ("lv", 20))}
    assert columns["rv"] < columns["lv"]
    assert np.nonzero(shown == 7)[0].mean() < np.nonzero(shown == 10)[0].mean()  # anterior above inferior


def test_a_study_has_the_same_bytes_alone_and_at_another_place(made, tmp_path):
    write_study("PH-0001", SPEC, tmp_path)
    assert hashes(tmp_path / "PH-0001") == hashes(made / "studies" / "PH-0001")


def test_files_are_those_of_every_machine(made):
    """Pinned: these change with the phantom alone."""
    found = hashes(made / "studies" / "PH-NORMAL")
    assert {name: found[name][:16] for name in PINNED} == PINNED


def test_a_folder_that_is_not_empty_is_left_alone(tmp_path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(InputError, match="is not empty; give a folder that is absent or empty"):
        make_cohort(SPEC, tmp_path)
    assert (tmp_path / "mine.txt").read_text() == "keep"


def test_slices_are_those_whose_mask_file_has_a_lesion(tmp_path: Path) -> None:
    """Read back from the files by their labels; the phantom's codes are not used."""
    records = {record["subtask"]: record for record in write_study("PH-ICM-LAD", LESIONS, tmp_path)}
    masks = tmp_path / "PH-ICM-LAD" / "masks"
    labels = json.loads((masks / "labels.json").read_text())
    lesion = [int(value) for value, name in labels.items() if name.startswith(("lesion", "microvascular"))]
    expected = []
    for name in ("lge_sax", "lge_4ch", "lge_3ch", "lge_2ch"):
        image = nib.load(masks / f"{name}.nii.gz")
        area = image.header.get_zooms()[0] * image.header.get_zooms()[1]
        inside = np.isin(np.asarray(image.dataobj), lesion).sum(axis=(0, 1))
        expected += [(name, rank) for rank, count in enumerate(inside) if count * area >= LEAST_MM2]
    for subtask in ("L01", "L02", "L03", "L04", "L05"):
        named = [(entry["volume_id"], entry["slice"]) for entry in records[subtask]["evidence_slices"]]
        assert sorted(named) == sorted(expected)
    assert 3 < len(expected) < 16
    assert all("evidence_slices" not in records[subtask] for subtask in ("C01", "P01", "D01", "R-LGE"))


def test_what_is_normal_names_none(made: Path) -> None:
    records = map(json.loads, (made / "questions.jsonl").read_text().splitlines())
    assert not any("evidence_slices" in one for one in records if one["study_id"] == "PH-NORMAL")


CAVITY = [codes.LV_BLOOD, codes.PAPILLARY]


@pytest.fixture(scope="module", params=["from_diastole", "drawn_cycle"])
def cycle(request, tmp_path_factory):
    """Volume of the cavity by phase, by its masks; the volume's record; the answers."""
    folder = tmp_path_factory.mktemp(request.param)
    also = {"masks", request.param} - {"from_diastole"}
    spec = PhantomSpec(n_sampled=1, also=tuple(also))
    records = write_study("PH-0001", spec, folder, load_catalogue("numbers-1"))
    entries = json.loads((folder / "PH-0001" / "study.json").read_text())["volumes"]
    entry = next(entry for entry in entries if entry["volume_id"] == "cine_sax")
    stored = read_file(folder / "PH-0001" / entry["mask"]["path"])
    frames = voxels(stored, parse_header(stored)).reshape(entry["shape"][::-1])  # slice by slice
    areas = np.isin(frames, CAVITY).sum(axis=(1, 2)).reshape(-1, entry["layout"]["n_phases"])
    volumes = areas.sum(axis=0) * np.prod(entry["spacing_mm"]) / 1000
    return request.param, volumes, entry, {row["subtask"]: row["answer"][0] for row in records}


def number(answers, subtask):
    return float(answers[subtask].split()[0])


def test_answers_agree_with_the_masks(cycle):
    _, volumes, _, answers = cycle
    assert abs(number(answers, "N04") - 1 - volumes.argmax()) <= 1
    assert abs(number(answers, "N05") - 1 - volumes.argmin()) <= 1
    assert number(answers, "N02") == pytest.approx(volumes.max(), rel=0.1)
    assert number(answers, "N03") == pytest.approx(volumes.min(), rel=0.15)
    assert number(answers, "N01") == pytest.approx(100 * (1 - volumes.min() / volumes.max()), abs=5)


def test_a_drawn_cycle_is_marked_nowhere(cycle):
    begins, volumes, entry, answers = cycle
    if begins == "drawn_cycle":
        assert (entry["ed_phase"], entry["es_phase"]) == (0, 0)
        assert 1 < number(answers, "N04") < len(volumes)
        assert 1 < number(answers, "N05") < len(volumes)
    else:
        assert number(answers, "N04") == 1
        assert number(answers, "N05") == entry["es_phase"] + 1


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
        (["format=dicom"], "vendor= is not given; give vendor=..."),
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
