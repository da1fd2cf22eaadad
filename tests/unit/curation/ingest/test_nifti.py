"""NIfTI folders: the phantom comes back from every spelling; what headers do not tell waits for a person."""

import json
import random
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.config.curation_specs import IngestSpec
from cardiolens.curation.ingest.import_run import ingest
from cardiolens.curation.ingest.nifti_file import scan
from cardiolens.study.manifest import read_study
from tests.unit.curation.ingest.exports import builds, healthy, proposals, rejects
from tests.unit.curation.ingest.nifti_exports import PLACEMENTS, SPELLINGS, Grid, grids, save, step_of, whole
from tests.unit.curation.ingest.test_import import only_study, shown

ORDERLY = [name for name in SPELLINGS if name != "flat"]
PLACED = [placement for placement in PLACEMENTS if placement[0][2] == 2]


@pytest.fixture(scope="module")
def study(prepared_phantom) -> Path:
    return prepared_phantom / "data" / "studies" / "PH-NORMAL"


@pytest.fixture(scope="module")
def volumes(study) -> dict[str, Grid]:
    return {grid.volume_id: grid for grid in grids(study)}


@pytest.fixture(scope="module")
def truth(study):
    return shown(study)


def imported(root: Path, **options: object) -> Path:
    ingest(IngestSpec(source=root / "in", out=root / "out", **options))
    return root / "out"


def in_any_spelling(folder: Path, grid: Grid, draw: random.Random) -> None:
    """Write a volume in a spelling by chance, its rows and columns turned and mirrored by chance."""
    SPELLINGS[draw.choice(ORDERLY)](folder, grid.placed(*draw.choice(PLACED)))


@pytest.mark.full
def test_a_study_written_in_all_spellings_at_once_comes_back_frame_by_frame(volumes, truth, tmp_path):
    draw = random.Random(7)
    for grid in volumes.values():
        in_any_spelling(tmp_path / "in" / "Doe01", grid, draw)
    assert shown(only_study(imported(tmp_path))) == truth


def test_phases_of_files_may_count_from_zero(volumes, truth, tmp_path):
    grid = volumes["cine_sax"]
    for phase in range(grid.voxels.shape[3]):
        path = tmp_path / "in" / "Doe01" / f"cine_sax_frame{phase:02d}.nii"
        save(path, grid.voxels[..., phase], grid.affine)
    assert shown(only_study(imported(tmp_path))) == {"cine_sax": truth["cine_sax"]}


def test_axes_that_are_not_x_y_z_t_give_no_wrong_volume(volumes, truth, tmp_path):
    for grid in volumes.values():
        SPELLINGS["flat"](tmp_path / "in" / "Doe01", grid)
    found = shown(only_study(imported(tmp_path)))
    still = {name for name, grid in volumes.items() if grid.voxels.shape[3] == 1}
    assert found == {name: truth[name] for name in found}
    assert found.keys() <= still


def test_every_placement_of_a_volume_has_the_same_frames_in_the_same_patient(volumes, tmp_path):
    grid = volumes["cine_sax"]
    corners = set()
    for number, (order, flips) in enumerate(PLACED):
        placed = grid.placed(order, flips)
        path = save(tmp_path / f"{number}.nii", placed.voxels, placed.affine, **step_of(grid))
        found = scan(Path(str(path)))
        assert found.grid == (10, 12, 64, 64), (order, flips)
        middle = found.affine @ [31.5, 31.5, 4.5, 1]
        corners.add(tuple(np.round(middle[:3], 2) + 0.0))
    assert len(corners) == 1


def acdc(folder: Path, grid: Grid, *, with_4d: bool) -> None:
    """A patient as ACDC has it."""
    name, values = folder.name, grid.voxels
    if with_4d:
        whole(folder, grid, f"{name}_4d")
    for phase in (grid.ed, grid.es):
        path = folder / f"{name}_frame{phase + 1:02d}.nii.gz"
        save(path, values[..., phase], grid.affine)
        mask = (values[..., phase] > 500).astype(np.uint8)
        save(folder / f"{name}_frame{phase + 1:02d}_gt.nii.gz", mask, grid.affine)
    (folder / "Info.cfg").write_text(f"ED: {grid.ed + 1}\nES: {grid.es + 1}\nGroup: DOE\nHeight: 184\n")


def test_a_patient_of_acdc_has_its_cine_its_declared_phases_and_no_mask(volumes, truth, tmp_path):
    acdc(tmp_path / "in" / "patient007", volumes["cine_sax"], with_4d=True)
    out = imported(tmp_path, layout="none")
    assert shown(only_study(out)) == {"cine_sax": truth["cine_sax"]}
    assert sorted(line["reason"] for line in rejects(out)) == [
        "duplicate",
        "duplicate",
        "mask",
        "mask",
        "no_image",
    ]
    assert "DOE" not in "".join(path.read_text() for path in out.rglob("*.json"))


def test_copies_that_name_ed_and_es_are_heeded_whenever_they_come(volumes, tmp_path):
    grid, folder = volumes["cine_sax"], tmp_path / "in" / "Doe01"
    whole(folder, grid)
    imported(tmp_path)
    for moment, phase in (("ED", 3), ("ES", 7)):
        save(folder / f"cine_sax_{moment}.nii", grid.voxels[..., phase], grid.affine)
    (volume,) = read_study(only_study(imported(tmp_path))).manifest.volumes
    assert (volume.ed_phase, volume.es_phase) == (3, 7)


def test_files_of_ed_and_es_alone_are_a_cine_of_two_phases(volumes, tmp_path):
    acdc(tmp_path / "in" / "patient007", volumes["cine_sax"], with_4d=False)
    (volume,) = read_study(only_study(imported(tmp_path, subject=""))).manifest.volumes
    assert (volume.volume_id, volume.shape[3], volume.ed_phase, volume.es_phase) == ("cine_sax", 2, 0, 1)


@pytest.mark.parametrize("spoil", ["none", "identity", "straight", "differ"])
def test_a_view_whose_place_nobody_tells_waits_for_a_person(volumes, tmp_path, spoil):
    grid = volumes["cine_sax"]
    straight = np.diag([3.2, 3.2, 9.36, 1.0])
    affine = {"none": None, "identity": np.eye(4), "straight": straight, "differ": grid.affine}[spoil]
    path = save(tmp_path / "in" / "p1" / "cine_sax.nii", grid.voxels, affine, **step_of(grid))
    whole(tmp_path / "in" / "p1", volumes["cine_4ch"])
    if spoil == "differ":
        image = nib.load(path, mmap=False)
        image.set_qform(straight, 1)
        image.set_sform(grid.affine, 1)
        nib.save(image, path)
    out = imported(tmp_path)
    (waiting,) = [p for p in proposals(out) if p["status"] == "waits"]
    assert (waiting["volume_id"], waiting["reason"]) == ("cine_sax", "no_position")
    assert waiting["entry"]["spatial_order"] == "unknown"
    kept = nib.load(next(out.rglob("waits_*.nii")))
    assert (int(kept.header["sform_code"]), int(kept.header["qform_code"])) == (0, 0)
    assert [volume.volume_id for volume in read_study(only_study(out)).manifest.volumes] == ["cine_4ch"]


def test_what_headers_names_and_sidecars_say_of_people_stays_behind(volumes, tmp_path, capfd):
    told = {
        "descrip": b"DOE^JANE",
        "aux_file": b"MRN-77801",
        "db_name": b"DOE^JANE",
        "intent_name": b"MRN-77801",
    }
    grid = volumes["cine_sax"]
    path = save(tmp_path / "in" / "MRN-77801" / "DOE_cine_sax.nii", grid.voxels, grid.affine, **told)
    image = nib.load(path, mmap=False)
    image.header.extensions.append(nib.nifti1.Nifti1Extension("comment", b"DOE^JANE of ACC-991"))
    nib.save(nib.Nifti1Image(np.asarray(image.dataobj), grid.affine, image.header), path)
    sidecar = {
        "PatientName": "DOE^JANE",
        "DOE": 1,
        "PatientSex": "F",
        "PatientAge": "063Y",
        "Manufacturer": "GE DOE",
    }
    path.with_suffix(".json").write_text(json.dumps(sidecar))
    save(path.with_name("DOE_seg.nii"), grid.voxels[..., 0], grid.affine)
    out = imported(tmp_path, key=tmp_path / "key")
    manifest = read_study(only_study(out)).manifest
    assert (manifest.sex, manifest.age_band, manifest.vendor) == ("female", "60-69", "GE")
    output = capfd.readouterr()
    texts = [output.out.encode(), output.err.encode()]
    texts += [
        path.read_bytes() + str(path.relative_to(out)).encode() for path in out.rglob("*") if path.is_file()
    ]
    for text in texts:
        for name in (b"DOE", b"MRN-77801", b"ACC-991"):
            assert name not in text
    (build,) = builds(out)
    assert {"NIfTI descrip", "other entries of sidecars"} <= build["removed"].keys()


def test_dicom_and_nifti_in_one_folder_are_studies_of_their_own(volumes, tmp_path):
    healthy(tmp_path / "in" / "mixed")
    whole(tmp_path / "in" / "mixed", volumes["cine_4ch"])
    out = imported(tmp_path)
    found = {
        tuple(volume.volume_id for volume in read_study(folder).manifest.volumes)
        for folder in (out / "studies").iterdir()
    }
    assert found == {("cine_sax",), ("cine_4ch",)}
