"""Layouts of public sets: every voxel, millimetre, order, moment and mask of the phantom comes back."""

import gzip
import json
import shutil
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.ingest.assignment import propose_layout
from cardiolens.curation.ingest.conventions import convention, conventions
from cardiolens.curation.masks.labels import Tissue, label_map
from cardiolens.curation.questions.set_questions import write_all_questions, write_set_questions
from cardiolens.curation.release import public_set
from tests.support.sets.set_writers import SETS
from tests.unit.curation.ingest.exports import CURRENT, healthy, proposals
from tests.unit.curation.ingest.nifti_exports import grids, save, whole
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

WAITS = {("myops", "103"), ("mscmr", "patient3")}  # their files tell no position


@pytest.fixture(scope="module")
def subjects():
    return hearts()


@pytest.fixture(scope="module")
def sets(subjects, tmp_path_factory):
    """Every set, written and imported once: (truths, out) by its name."""
    made = {}
    for form in SETS:
        root = tmp_path_factory.mktemp(form)
        truths = write_set(subjects, form, root / "export")
        made[form] = truths, imported_set(root / "export", root / "out")
    return made


@pytest.fixture
def acdc(subjects, tmp_path):
    """One patient of ACDC, to be changed."""
    write_set(subjects[:1], "acdc", tmp_path / "export")
    return tmp_path / "export" / "database" / "training" / "patient001"


@pytest.mark.parametrize("form", SETS)
def test_every_volume_comes_back_to_the_voxel_and_millimetre(sets, form):
    truths, out = sets[form]
    for truth in truths:
        folder = study_of(out, form, truth["subject"])
        if (form, truth["subject"]) in WAITS:
            assert not folder.exists()
            continue
        for name, expected in truth["volumes"].items():
            volume = volume_of(folder, name)
            assert frames_of_file(folder / volume["path"]) == expected["frames"]
            assert volume["spacing_mm"] == pytest.approx(expected["spacing_mm"], rel=1e-3)
            assert volume["display_transform"] == {"transpose": True, "flip_rows": False, "flip_cols": False}
            if name.endswith("sax"):
                assert volume["spatial_order"] == "base_to_apex"
            if name.startswith("cine") and expected["phases"] > 1:
                assert (volume["ed_phase"], volume["es_phase"]) == (expected["ed"], expected["es"])


@pytest.mark.parametrize("form", SETS)
def test_masks_lie_on_the_cavity_of_their_volume(sets, subjects, form):
    truths, out = sets[form]
    labels = label_map(conventions()[form].labels or "")
    for truth, subject in zip(truths, subjects, strict=True):
        folder = study_of(out, form, truth["subject"])
        for volume in manifest_of(folder)["volumes"] if folder.exists() else ():
            if "mask" not in volume:
                assert form == "cinemyops", "only its cine has a mask"
                continue
            values = np.asarray(nib.load(folder / volume["mask"]["path"]).dataobj)
            values = values[..., None] if values.ndim == 3 else values
            tissues = labels.tissues(values, volume["sequence"])
            phases = np.flatnonzero((tissues == Tissue.LV_BLOOD).any(axis=(0, 1, 2)))
            codes = subject.volumes[volume["volume_id"]].codes
            codes = codes[:, :, 3:8] if form == "myops" else codes
            for phase in phases:
                blood = np.isin(codes[..., phase], [20, 21, 32, 121])
                assert np.array_equal(tissues[..., phase] == Tissue.LV_BLOOD, blood)
            declared = {volume["ed_phase"] or 0, volume["es_phase"] or 0}
            assert set(phases.tolist()) <= declared


def test_a_study_without_a_position_waits_with_a_proposal(sets):
    for form, subject in WAITS:
        _, out = sets[form]
        folder = study_of(out, form, subject)
        waiting = proposals_of(out, folder)
        assert {proposal["status"] for proposal in waiting} == {"waits"}
        assert {proposal["reason"] for proposal in waiting} == {"no_position"}
        assert all(proposal["volume_id"] for proposal in waiting)


def test_facts_of_information_files_reach_the_study(sets):
    def facts(form, subject):
        tree = manifest_of(study_of(sets[form][1], form, subject))
        return {
            name: value for name, value in tree.items() if name not in ("volumes", "study_id", "patient_id")
        }

    body = {"height_cm": 172.0, "weight_kg": 67.8}
    assert facts("acdc", "patient001").items() >= (body | {"vendor": "Siemens", "cohort": ["acdc"]}).items()
    mnms = body | {"vendor": "Philips", "site": "2", "sex": "male", "age_band": "50-59"}
    assert facts("mnms", "A1S9V1").items() >= mnms.items()
    assert facts("mnms2", "001").items() >= {"vendor": "Philips", "field_tesla": 1.5}.items()
    assert facts("emidec", "N001").items() >= {"sex": "female", "age_band": "70-79"}.items()


def test_groups_and_masks_become_questions_with_the_phantoms_answers(sets):
    expected = {
        "acdc": {"patient001": "A", "patient002": "B", "patient003": "C"},
        "mnms": {"A1S9V1": "A", "A2S9V2": "B", "A3S9V3": "C"},
        "mnms2": {"001": "A", "003": "C"},
    }
    for form, diagnoses in expected.items():
        _, out = sets[form]
        drafted = write_set_questions(out, conventions()[form])
        answers = {(line["study"], line["subtask"]): line["answer"] for line in drafted.lines}
        assert {line["verification"]["status"] for line in drafted.lines} == {"label of the set"}
        for subject, key in diagnoses.items():
            study = study_of(out, form, subject).name
            assert answers[study, "D01"] == [key]
            assert (answers.get((study, "D02")) == ["A"]) == (key == "C")
        normal = study_of(out, form, next(iter(diagnoses))).name
        assert answers[normal, "C10"] == ["A"]
    assert {line["origin"] for line in drafted.lines} == {"set", "mask"}


def test_the_same_set_has_the_same_digests_wherever_it_lies(subjects, tmp_path):
    digests = []
    for name in ("here", "there"):
        source = tmp_path / name / "deep" / "er" if name == "there" else tmp_path / name
        write_set(subjects[:1], "acdc", source)
        out = imported_set(tmp_path / name, tmp_path / f"out_{name}")
        write_set_questions(out, conventions()["acdc"])
        write_all_questions(out)
        record = public_set.write_set(tmp_path / name, out, conventions()["acdc"])
        digests.append([record[part] for part in ("sets", "files")])
    assert digests[0] == digests[1]


@pytest.mark.parametrize(
    ("names", "word", "message"),
    [
        (["patient001/patient001_sax_ed.nii.gz"], "acdc", r"repackaged version: resampled to 1 x 1 x 10 mm"),
        (["patient001/patient001_sax_ed.nii.gz"], None, r"patient001_sax_ed\.nii\.gz are of a repackaged"),
        (["imagesTr/patient001_frame01_0000.nii.gz"], None, r"renamed for nnU-Net"),
        (["a/b_sax.nii.gz"], "acdc", r"none of 1 NIfTI files is an image of it; expected files such as"),
        (["a/b_sax.nii.gz"], "adcd", r"no such layout; did you mean acdc\? choose from acdc"),
    ],
)
def test_what_is_no_set_is_refused_with_the_reason(acdc, tmp_path, names, word, message):
    for name in names:
        (tmp_path / "other" / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(acdc / "patient001_4d.nii.gz", tmp_path / "other" / name)
    with pytest.raises(InputError, match=message):
        imported_set(tmp_path / "other", tmp_path / "out", layout=word)


def test_links_of_a_public_set_name_its_rejects(acdc, tmp_path):
    (tmp_path / "export" / "more.zip").write_bytes(b"x")
    imported_set(tmp_path / "export", tmp_path / "out", links=tmp_path / "links")
    lines = map(json.loads, (tmp_path / "links").read_text().splitlines())
    assert "more.zip" in {line.get("name") for line in lines}


def test_two_copies_of_a_subject_are_refused(acdc, tmp_path):
    shutil.copytree(acdc, tmp_path / "export" / "again" / "patient001")
    with pytest.raises(InputError, match="are the same file of one subject"):
        imported_set(tmp_path / "export", tmp_path / "out")


def test_no_layout_is_proposed_for_other_folders():
    assert propose_layout(["Doe/cine_sax.nii.gz", "Doe/lge_sax.nii.gz"]) is None
    assert propose_layout(["a/patient001_4d.nii.gz", "b/x.nii", "b/y.nii"]) is None


def changed(path: Path, change) -> None:
    """Change voxels and header of a file in place, past nibabel, which would mend the header."""
    raw = gzip.decompress(path.read_bytes())
    header = nib.Nifti1Header(raw[:348])
    shape = header.get_data_shape()
    voxels = np.frombuffer(raw[352:], header.get_data_dtype()).reshape(shape, order="F").copy(order="F")
    change(voxels, header)
    path.write_bytes(gzip.compress(header.binaryblock + raw[348:352] + voxels.tobytes(order="F"), 1))


def turned_header(_, header) -> None:
    header["srow_x"][0], header["srow_y"][1] = 1.0, 1.0


def turned_with_its_header(voxels, header) -> None:
    voxels[:] = voxels[::-1, ::-1].copy()
    turned_header(voxels, header)


def mirrored(voxels, _) -> None:
    voxels[:] = voxels[::-1].copy()


def times(factor: float):
    return lambda _, header: header["pixdim"].__setitem__(slice(1, 4), header["pixdim"][1:4] * factor)


def other_labels(voxels, _) -> None:
    voxels[voxels > 0] += 40


CONTRADICTIONS = {  # files, change of voxels and header, flag
    "mirrored": ("*.nii.gz", mirrored, "display_contradicted"),
    "turned with its header": ("*.nii.gz", turned_with_its_header, "display_contradicted"),
    "of 10 mm": ("*.nii.gz", times(0.2), "spacing_unsettled"),
    "of 200 mm": ("*.nii.gz", times(5.0), "spacing_unsettled"),
    "other labels": ("*_gt.nii.gz", other_labels, "mask_contradicted"),
    "no mask confirms the display": ("*.nii.gz", turned_header, "display_contradicted"),
    "ES is ED": ("ED: 5\nES: 1", None, "phases_contradicted"),
    "ES beyond the last phase": ("ED: 1\nES: 50", None, "phases_contradicted"),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_what_header_mask_and_information_contradict_waits(acdc, tmp_path, what):
    files, change, flag = CONTRADICTIONS[what]
    if change is None:
        info = acdc / "Info.cfg"
        info.write_text(info.read_text().replace("ED: 1\nES: 5", files))
    for path in sorted(acdc.glob(files)) if change else ():
        changed(path, change)
        if what.startswith("no mask") and "_gt" in path.name:
            path.unlink()
    out = imported_set(tmp_path / "export", tmp_path / "out")
    folder = study_of(out, "acdc", "patient001")
    [proposal] = [each for each in proposals_of(out, folder) if each["status"] == "waits"]
    assert not folder.exists()
    assert flag in proposal["flags"]


@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, -1, 1)])
def test_acdc_comes_in_whichever_identity_its_header_has(subjects, tmp_path, signs):
    """Unit diagonals of code 2, and the lengths of voxels in `pixdim` alone: both have been seen."""
    write_set(subjects, "acdc", tmp_path / "export")
    for path in (tmp_path / "export").rglob("*.nii.gz"):
        image = nib.load(path, mmap=False)
        image.header.set_sform(np.diag([*signs, 1.0]), 2)
        image.header.set_qform(None, 0)
        nib.save(nib.Nifti1Image(np.asarray(image.dataobj), None, image.header), path)
    out = imported_set(tmp_path / "export", tmp_path / "out")
    manifests = [json.loads(path.read_text()) for path in out.glob("studies/*/study.json")]
    volumes = [volume for manifest in manifests for volume in manifest["volumes"]]
    assert [volume["volume_id"] for volume in volumes] == ["cine_sax"] * len(subjects)
    assert all("mask" in volume and volume["spacing_mm"][:2] == [3.2, 3.2] for volume in volumes)


def test_a_layout_of_ones_own_needs_no_code(subjects, tmp_path):
    source = tmp_path / "archive"
    write_set(subjects[:1], "mnms", tmp_path / "export")
    made = tmp_path / "export" / "OpenDataset" / "Training" / "Labeled" / "A1S9V1"
    (source / "heart_7").mkdir(parents=True)
    shutil.copy(made / "A1S9V1_sa.nii.gz", source / "heart_7" / "beat.nii.gz")
    shutil.copy(made / "A1S9V1_sa_gt.nii.gz", source / "heart_7" / "beat-drawn.nii.gz")
    (source / "list.csv").write_text("who;first;last;what\nheart_7;0;4;well\n")
    own = tmp_path / "ours.yaml"
    own.write_text(
        "title: ours\nsubject: 'heart_[0-9]+'\nlabels: mnms\nheader: {time: none}\n"
        "files:\n  - {files: '{subject}/beat.nii', image: cine_sax}\n"
        "  - {files: '{subject}/beat-drawn.nii', mask_of: [cine_sax]}\n"
        "information:\n  - {files: list.csv, kind: table, subject: who, facts: "
        "{ed: {column: first, counts_from: 0}, es: {column: last, counts_from: 0}, group: {column: what}}}\n"
        "groups: {well: {D01: A}}\n"
    )
    out = imported_set(source, tmp_path / "out", layout=str(own))
    [folder] = (out / "studies").iterdir()
    volume = volume_of(folder, "cine_sax")
    assert (volume["ed_phase"], volume["es_phase"]) == (0, 4)
    drafted = write_set_questions(out, convention(str(own)))
    assert {line["subtask"] for line in drafted.lines} >= {"D01", "C10"}


@pytest.mark.parametrize("first", [0, 1])
def test_phases_that_are_files_may_count_from_zero_or_one(subjects, tmp_path, first):
    write_set(subjects[:1], "mnms", tmp_path / "export")
    made = tmp_path / "export" / "OpenDataset" / "Training" / "Labeled" / "A1S9V1"
    (tmp_path / "in").mkdir()
    for ending in ("", "_gt"):
        image = nib.load(made / f"A1S9V1_sa{ending}.nii.gz")
        for phase in range(image.shape[3]):
            if not ending or np.asarray(image.dataobj)[..., phase].any():
                path = tmp_path / "in" / f"heart_7_{phase + first}{ending}.nii.gz"
                nib.save(image.slicer[..., phase], path)
    (tmp_path / "in" / "list.csv").write_text("who;first;last\nheart_7;0;4\n")
    own = tmp_path / "ours.yaml"
    own.write_text(
        "title: ours\nsubject: 'heart_[0-9]+'\nlabels: mnms\nheader: {time: none}\n"
        "files:\n  - {files: '{subject}_{phase}.nii', image: cine_sax}\n"
        "  - {files: '{subject}_{phase}_gt.nii', mask_of: [cine_sax]}\n"
        "information:\n  - {files: list.csv, kind: table, subject: who, facts: "
        "{ed: {column: first, counts_from: 0}, es: {column: last, counts_from: 0}}}\n"
    )
    out = imported_set(tmp_path / "in", tmp_path / "out", layout=str(own))
    volume = volume_of(next((out / "studies").iterdir()), "cine_sax")
    assert (volume["ed_phase"], volume["es_phase"]) == (0, 4)
    assert "mask" in volume


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "title: x\nfiles: [{files: a.nii, image: heart}]",
            r"no study holds a volume 'heart'; choose of cine_sax",
        ),
        ("title: x\nfiles: [{files: '{who}.nii', image: cine_sax}]", r"no place \{who\}; choose of subject"),
        (
            "title: x\nfiles: [{files: a.nii, image: lge_sax}]\nlabels: theirs",
            r"labels 'theirs': choose of acdc",
        ),
        ("- x", "is no layout"),
        ("title: x", "neither files of NIfTI nor dicom"),
        ("title: x\ndicom: 'study/**'", r"study/\*\*: does not name the patient; write \{subject\}"),
    ],
)
def test_a_wrong_layout_is_refused_by_field_and_legal_values(tmp_path, text, message):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        convention(str(path))


@pytest.fixture
def every(prepared_phantom):
    """The volumes of a phantom study."""
    return {grid.volume_id: grid for grid in grids(prepared_phantom / "data" / "studies" / "PH-NORMAL")}


def test_sessions_of_bids_are_studies_of_one_patient(every, tmp_path):
    for session in ("ses-1", "ses-2"):
        home = tmp_path / "in" / "sub-07" / session / "anat"
        for name in ("cine_sax", "lge_sax"):
            sequence, _, view = name.partition("_")
            whole(home, every[name], f"sub-07_{session}_acq-{view}_{sequence}")
    (tmp_path / "in" / "participants.tsv").write_text("participant_id\tsex\tage\tgroup\nsub-07\tF\t61\tx\n")
    out = imported_set(tmp_path / "in", tmp_path / "out", layout="bids")
    trees = [json.loads(path.read_text()) for path in out.glob("studies/*/study.json")]
    assert len(trees) == 2
    assert len({tree["patient_id"] for tree in trees}) == 1
    assert {tree["sex"] for tree in trees} == {"female"}
    assert all([v["volume_id"] for v in tree["volumes"]] == ["cine_sax", "lge_sax"] for tree in trees)


@pytest.mark.parametrize("told", [{"PixelSpacing": [1.0, 1.0]}, {"SpacingBetweenSlices": 2.0}])
def test_a_sidecar_that_contradicts_the_spacing_waits(every, tmp_path, told):
    whole(tmp_path / "in" / "Doe", every["cine_sax"], "cine_sax")
    (tmp_path / "in" / "Doe" / "cine_sax.json").write_text(json.dumps(told))
    out = imported_set(tmp_path / "in", tmp_path / "out")
    [proposal] = proposals(out)
    assert (proposal["status"], proposal["reason"]) == ("waits", "no_spacing")
    (tmp_path / "in" / "Doe" / "cine_sax.json").write_text("{}")
    [proposal] = proposals(imported_set(tmp_path / "in", tmp_path / "out"))
    assert proposal["status"] == "taken", "a changed sidecar is read again"


def test_a_cine_of_a_minute_by_its_header_waits_as_a_cine(every, tmp_path):
    cine = every["cine_sax"]
    save(tmp_path / "in" / "Doe" / "cine_sax.nii.gz", cine.voxels, cine.affine, step_s=5.0)
    out = imported_set(tmp_path / "in", tmp_path / "out")
    [proposal] = proposals(out)
    assert (proposal["status"], proposal["volume_id"]) == ("waits", "cine_sax")
    assert "phases_contradicted" in proposal["flags"]


def test_dicom_of_sunnybrook_gets_its_patients_and_groups(tmp_path):
    for number, subject in enumerate(("SCD0000101", "SCD0000201")):
        CURRENT["study"] = f"1.2.3.{number}"
        healthy(tmp_path / "in" / "SCD_IMAGES_01" / subject / "CINESAX_300", 10)
    (tmp_path / "in" / "scd_patientdata.csv").write_text(
        "PatientID,OriginalID,Gender,Age,Pathology\n"
        "SCD0000101,SC-HF-I-1,Male,60,Heart failure with infarct\n"
        "SCD0000201,SC-HYP-1,Female,55,Hypertrophy\n"
    )
    out = imported_set(tmp_path / "in", tmp_path / "out", layout="scd")
    tree = manifest_of(study_of(out, "scd", "SCD0000101"))
    assert (tree["sex"], tree["age_band"], tree["cohort"]) == ("male", "60-69", ["scd"])
    drafted = write_set_questions(out, conventions()["scd"])
    assert [(line["study"], line["subtask"], line["answer"]) for line in drafted.lines] == [
        (study_of(out, "scd", "SCD0000101").name, "D01", ["B"])
    ]
    assert drafted.unanswered == {"Hypertrophy": "hypertrophy of any cause"}


def test_volumes_of_the_data_science_bowl_grade_the_ejection_fraction(tmp_path):
    CURRENT["study"] = "1.2.3.9"
    healthy(tmp_path / "in" / "train" / "7" / "study" / "sax_10", 10)
    (tmp_path / "in" / "train.csv").write_text("Id,Systole,Diastole\n7,40.0,110.0\n8,1,2\n")
    out = imported_set(tmp_path / "in", tmp_path / "out", layout="dsb2015")
    drafted = write_set_questions(out, conventions()["dsb2015"])
    assert [(line["subtask"], line["answer"], line["origin"]) for line in drafted.lines] == [
        ("C10", ["A"], "set")
    ]
    assert "63.6 %" in drafted.lines[0]["evidence"][0]
    (tmp_path / "in" / "train.csv").write_text("Id,Systole,Diastole\n7,42.0,110.0\n²,1,2\n")
    imported_set(tmp_path / "in", out, layout="dsb2015")
    [line] = write_set_questions(out, conventions()["dsb2015"]).lines
    assert "61.8 %" in line["evidence"][0], "a changed table is read again"


def test_without_masks_and_position_the_order_is_unknown_and_the_import_says_so(acdc, tmp_path):
    for path in acdc.glob("*_gt.nii.gz"):
        path.unlink()
    out = imported_set(tmp_path / "export", tmp_path / "out")
    folder = study_of(out, "acdc", "patient001")
    assert volume_of(folder, "cine_sax")["spatial_order"] == "unknown"
    assert any("order_by_default" in proposal["flags"] for proposal in proposals_of(out, folder))


def test_a_mask_whose_phase_nobody_tells_is_named(subjects, tmp_path):
    write_set(subjects[:1], "mnms2", tmp_path / "export")
    home = tmp_path / "export" / "MnM2" / "dataset" / "001"
    for moment in ("ED", "ES"):
        (home / f"001_SA_{moment}.nii.gz").unlink()
    out = imported_set(tmp_path / "export", tmp_path / "out")
    folder = study_of(out, "mnms2", "001")
    volume = volume_of(folder, "cine_sax")
    assert "mask" not in volume
    flags = {flag for proposal in proposals_of(out, folder) for flag in proposal["flags"]}
    assert "mask_not_used" in flags
