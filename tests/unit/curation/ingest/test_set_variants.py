"""Public sets as they circulate: other folders, names and tables of the same hearts give the same studies."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import nibabel as nib
import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.assignment import propose_layout
from tests.unit.curation.ingest.exports import proposals, rejects
from tests.unit.curation.ingest.set_phantoms import (
    frames_of_file,
    hearts,
    imported_set,
    manifest_of,
    proposals_of,
    study_of,
    volume_of,
    write_set,
)

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def normal():
    return hearts(("PH-NORMAL",))


def moved(folder: Path, rename: Callable[[PurePosixPath], str | None]) -> Path:
    """Copy an export with every file under another path; None leaves it out."""
    copy = folder.with_name("moved")
    for path in sorted(folder.rglob("*")):
        name = rename(PurePosixPath(path.relative_to(folder))) if path.is_file() else None
        if name is not None:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy / name)
    return copy


def in_a_folder_of_its_name(path: PurePosixPath) -> str:
    """`a/x.nii.gz` as some unpackers leave it."""
    return str(path.parent / path.name.removesuffix(".gz") / path.name) if ".nii" in path.name else str(path)


def expect_whole(out: Path, form: str, subject: str, truth: dict, *, phases: bool = True) -> Path:
    """The study of a subject, after checking its voxels, lengths, order, ED and ES."""
    folder = study_of(out, form, subject)
    for name, expected in truth["volumes"].items():
        volume = volume_of(folder, name)
        assert volume["spacing_mm"] == pytest.approx(expected["spacing_mm"], rel=1e-3)
        if phases:
            assert frames_of_file(folder / volume["path"]) == expected["frames"]
        if name.startswith("cine") and phases and expected["phases"] > 1:
            assert (volume["ed_phase"], volume["es_phase"]) == (expected["ed"], expected["es"])
    return folder


VARIANTS = {
    "one folder for all": ("acdc", lambda path: path.name, {}),
    "a folder for each file": ("acdc", in_a_folder_of_its_name, {}),
    "cine and mask alone": (
        "cinemyops",
        lambda path: f"center_beta/{path.name}" if path.name.endswith(("Cine.nii.gz", "gd.nii.gz")) else None,
        {"views": ("cine_sax",)},
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_other_folders_and_names_give_the_same_study(normal, tmp_path, variant):
    form, rename, options = VARIANTS[variant]
    [truth] = write_set(normal, form, tmp_path / "export")
    truth["volumes"] = {
        name: volume for name, volume in truth["volumes"].items() if name in options.get("views", (name,))
    }
    out = imported_set(moved(tmp_path / "export", rename), tmp_path / "out")
    folder = expect_whole(out, form, truth["subject"], truth)
    assert "mask" in volume_of(folder, next(iter(truth["volumes"])))
    if form in ("acdc", "mnms"):
        assert manifest_of(folder)["height_cm"] == truth["height_cm"]


def test_myops_of_care_has_cases_and_not_every_sequence(normal, tmp_path):
    [truth] = write_set(normal, "myops", tmp_path / "export")

    def as_care(path: PurePosixPath) -> str | None:
        sequence = path.name.split("_")[-1].replace("DE.", "LGE.")
        return None if sequence.startswith("C0") else f"MyoPS_train/CenterA/Case1001/Case1001_{sequence}"

    export = moved(tmp_path / "export", as_care)
    proposed = propose_layout([str(path.relative_to(export)) for path in export.rglob("*.nii.gz")])
    assert proposed is not None
    assert proposed.name == "myops"
    truth["volumes"].pop("cine_sax")
    out = imported_set(export, tmp_path / "out")
    assert "mask" in volume_of(expect_whole(out, "myops", "Case1001", truth), "lge_sax")


def test_one_phase_beside_the_cine_is_no_second_cine(normal, tmp_path):
    [truth] = write_set(normal, "cinemyops", tmp_path / "export")
    home = tmp_path / "export" / "CineMyoPS_train" / "center_alpha"
    cine = nib.load(home / "Case1001_Cine.nii.gz")
    still = np.asarray(cine.dataobj)[..., 0] + np.int16(3)
    nib.save(nib.Nifti1Image(still, cine.affine), home / "Case1001_C0.nii.gz")
    out = imported_set(tmp_path / "export", tmp_path / "out")
    expect_whole(out, "cinemyops", "Case1001", truth)


def test_labels_in_an_images_place_are_no_pictures(normal, tmp_path):
    write_set(normal, "acdc", tmp_path / "export")
    export = moved(
        tmp_path / "export",
        lambda path: f"labelsTr/{path.name.replace('_gt', '')}" if "_gt" in path.name else None,
    )
    with pytest.raises(InputError, match=r"none of its 2 files is a usable MR image .*mask"):
        imported_set(export, tmp_path / "out")


def test_a_key_without_a_value_does_not_take_the_next_line(normal, tmp_path):
    write_set(normal, "acdc", tmp_path / "export")
    info = tmp_path / "export" / "database" / "training" / "patient001" / "Info.cfg"
    info.write_text("ED: 1 \r\nES:  5\r\nGroup:\r\nHeight:\r\nNbFrame: 12\r\nWeight: 70,5\r\n")
    out = imported_set(tmp_path / "export", tmp_path / "out")
    tree = manifest_of(study_of(out, "acdc", "patient001"))
    assert "height_cm" not in tree
    assert "group" not in tree
    assert tree["weight_kg"] == 70.5
    [volume] = tree["volumes"]
    assert (volume["ed_phase"], volume["es_phase"]) == (0, 4)


@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_a_table_with_semicolons_and_decimal_commas(normal, tmp_path, encoding):
    [truth] = write_set(normal, "mnms", tmp_path / "export")
    [table] = (tmp_path / "export").rglob("*.csv")
    text = table.read_text().replace(",", ";").replace("172", "172,0 ").replace("\n", "\r\n")
    table.write_bytes(text.replace(";Siemens;", ";Siém;").encode(encoding))
    out = imported_set(tmp_path / "export", tmp_path / "out")
    folder = expect_whole(out, "mnms", truth["subject"], truth)
    assert manifest_of(folder)["height_cm"] == 172.0


def test_information_of_several_patients_in_one_folder_is_nobodys(tmp_path):
    two = hearts(("PH-NORMAL", "PH-ICM-LAD"))
    write_set(two, "acdc", tmp_path / "export")
    out = imported_set(moved(tmp_path / "export", lambda path: path.name), tmp_path / "out")
    trees = [json.loads(path.read_text()) for path in out.glob("studies/*/study.json")]
    assert not any("height_cm" in tree for tree in trees)
    assert sum(line["reason"] == "not_of_layout" for line in rejects(out)) == 2, "Info.cfg, and the citation"


def test_a_frame_that_is_rounded_otherwise_than_its_cine_gives_no_wrong_phase(normal, tmp_path):
    [truth] = write_set(normal, "mnms2", tmp_path / "export")
    for path in (tmp_path / "export").rglob("*_SA_E?.nii.gz"):
        image = nib.load(path)
        nib.save(nib.Nifti1Image(np.asarray(image.dataobj) * np.float32(0.5), image.affine), path)
    out = imported_set(tmp_path / "export", tmp_path / "out")
    folder = study_of(out, "mnms2", "001")
    volume = volume_of(folder, "cine_sax")
    assert frames_of_file(folder / volume["path"]) == truth["volumes"]["cine_sax"]["frames"]
    flags = {flag for proposal in proposals_of(out, folder) for flag in proposal["flags"]}
    assert "mask" in volume or "mask_not_used" in flags


def test_cines_whose_slices_and_phases_lie_on_one_axis_are_refused_by_name():
    names = [
        f"CINE_MULTI/SAX_TR/{folder}/CINE_SAX_00{k}.nii.gz" for folder in ("image", "anno") for k in (1, 2)
    ]
    with pytest.raises(InputError, match=r"layout=cmr_multi: 4 files .* the distance of slices"):
        propose_layout(names)


def test_a_mask_that_fits_no_heart_waits_though_the_position_is_known(normal, tmp_path):
    """Turned, without a right ventricle."""
    write_set(normal, "mnms", tmp_path / "export")
    [path] = (tmp_path / "export").rglob("*_sa_gt.nii.gz")
    drawn = nib.load(path)
    values = np.asarray(drawn.dataobj)
    turned = np.ascontiguousarray(np.where(values == 3, 0, values)[::-1, ::-1])
    nib.save(nib.Nifti1Image(turned, drawn.affine, drawn.header), path)
    [proposal] = proposals(imported_set(tmp_path / "export", tmp_path / "out"))
    assert (proposal["status"], proposal["reason"]) == ("waits", "contradicted")
    assert "mask_contradicted" in proposal["flags"]
