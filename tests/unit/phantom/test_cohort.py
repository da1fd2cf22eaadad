import gzip
import hashlib
import json

import nibabel as nib
import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort, write_study
from cardiolens.phantom.planes import views

PINNED = {
    "cine_4ch.nii.gz": "feb990417dca4c3d",
    "lge_sax.nii.gz": "3b18102ca2cff69b",
    "perf_sax.nii.gz": "04a585fa842feb68",
    "masks/cine_3ch.nii.gz": "d6ab01b3cfc6d504",
}
SPEC = PhantomSpec(canonical=("PH-NORMAL",), n_sampled=1, also=("masks",))


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


def test_volumes_are_what_their_manifest_says(made):
    for study in (made / "studies").iterdir():
        manifest = json.loads((study / "study.json").read_text())
        assert {entry["volume_id"] for entry in manifest["volumes"]} == set(views())
        for entry in manifest["volumes"]:
            image = nib.load(study / entry["path"])
            pixels = np.asarray(image.dataobj)
            assert pixels.dtype == np.int16
            assert 0 <= pixels.min() < pixels.max() <= 4095
            assert list(pixels.shape) == entry["shape"]
            assert entry["shape"][2] == entry["layout"]["n_slices"] * entry["layout"]["n_phases"]
            assert np.linalg.norm(image.affine[:3, :3], axis=0) == pytest.approx(
                entry["spacing_mm"], abs=1e-4
            )
            assert hashlib.sha256((study / entry["path"]).read_bytes()).hexdigest() == entry["sha256"]
            mask = nib.load(study / entry["mask"]["path"])
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
