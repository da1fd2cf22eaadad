"""Layouts of public sets: every voxel, millimetre, order, moment and mask of the phantom comes back.

`bench/set_traits.py` has other folders, names and headers; its golden pins what the import makes of each.
"""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

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
from tests.unit.curation.ingest.exports import CURRENT, healthy
from tests.unit.curation.ingest.nifti_exports import grids, whole
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


def test_two_copies_of_a_subject_are_refused(acdc, tmp_path):
    shutil.copytree(acdc, tmp_path / "export" / "again" / "patient001")
    with pytest.raises(InputError, match="are the same file of one subject"):
        imported_set(tmp_path / "export", tmp_path / "out")


def images_changed(home: Path, change: Callable[[np.ndarray, nib.Nifti1Header], object]) -> None:
    """Change voxels and header of every file in place, past nibabel, which would mend the header."""
    for path in home.glob("*.nii.gz"):
        raw = gzip.decompress(path.read_bytes())
        header = nib.Nifti1Header(raw[:348])
        stored = np.frombuffer(raw[352:], header.get_data_dtype())
        voxels = stored.reshape(header.get_data_shape(), order="F").copy(order="F")
        change(voxels, header)
        path.write_bytes(gzip.compress(header.binaryblock + raw[348:352] + voxels.tobytes(order="F"), 1))


def mirrored(home: Path) -> None:
    images_changed(home, lambda voxels, _: voxels.__setitem__(slice(None), voxels[::-1].copy()))


def a_fifth_as_long(home: Path) -> None:
    images_changed(
        home, lambda _, header: header["pixdim"].__setitem__(slice(1, 4), header["pixdim"][1:4] / 5)
    )


def end_systole_at_end_diastole(home: Path) -> None:
    info = home / "Info.cfg"
    info.write_text(info.read_text().replace("ED: 1\nES: 5", "ED: 5\nES: 1"))


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        (mirrored, "display_contradicted"),
        (a_fifth_as_long, "spacing_unsettled"),
        (end_systole_at_end_diastole, "phases_contradicted"),
    ],
)
def test_what_header_mask_and_information_contradict_waits(acdc, tmp_path, change, flag):
    change(acdc)
    out = imported_set(tmp_path / "export", tmp_path / "out")
    folder = study_of(out, "acdc", "patient001")
    [proposal] = [each for each in proposals_of(out, folder) if each["status"] == "waits"]
    assert not folder.exists()
    assert flag in proposal["flags"]


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
    ],
)
def test_a_wrong_layout_is_refused_by_field_and_legal_values(tmp_path, text, message):
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        convention(str(path))


def test_sessions_of_bids_are_studies_of_one_patient(prepared_phantom, tmp_path):
    every = {grid.volume_id: grid for grid in grids(prepared_phantom / "data" / "studies" / "PH-NORMAL")}
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
def test_a_sidecar_that_contradicts_the_spacing_waits(prepared_phantom, tmp_path, told):
    every = {grid.volume_id: grid for grid in grids(prepared_phantom / "data" / "studies" / "PH-NORMAL")}
    whole(tmp_path / "in" / "Doe", every["cine_sax"], "cine_sax")
    (tmp_path / "in" / "Doe" / "cine_sax.json").write_text(json.dumps(told))
    out = imported_set(tmp_path / "in", tmp_path / "out")
    [path] = out.glob("proposals/*/proposals.json")
    [proposal] = json.loads(path.read_text())["proposals"]
    assert (proposal["status"], proposal["reason"]) == ("waits", "no_spacing")


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


def moved(folder: Path, rename: Callable[[PurePosixPath], str | None]) -> Path:
    """Copy an export with every file under another path; None leaves it out."""
    copy = folder.with_name("moved")
    for path in sorted(folder.rglob("*")):
        name = rename(PurePosixPath(path.relative_to(folder))) if path.is_file() else None
        if name is not None:
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy / name)
    return copy


def expect_whole(out: Path, form: str, subject: str, truth: dict) -> Path:
    """The study of a subject, after checking its voxels, lengths, ED and ES."""
    folder = study_of(out, form, subject)
    for name, expected in truth["volumes"].items():
        volume = volume_of(folder, name)
        assert volume["spacing_mm"] == pytest.approx(expected["spacing_mm"], rel=1e-3)
        assert frames_of_file(folder / volume["path"]) == expected["frames"]
        if name.startswith("cine") and expected["phases"] > 1:
            assert (volume["ed_phase"], volume["es_phase"]) == (expected["ed"], expected["es"])
    return folder


def test_myops_of_care_has_cases_and_not_every_sequence(subjects, tmp_path):
    [truth] = write_set(subjects[:1], "myops", tmp_path / "export")

    def as_care(path: PurePosixPath) -> str | None:
        sequence = path.name.split("_")[-1].replace("DE.", "LGE.")
        return None if sequence.startswith("C0") else f"MyoPS_train/CenterA/Case1001/Case1001_{sequence}"

    export = moved(tmp_path / "export", as_care)
    proposed = propose_layout([str(path.relative_to(export)) for path in export.rglob("*.nii.gz")])
    assert proposed is not None
    assert proposed[0].name == "myops"
    truth["volumes"].pop("cine_sax")
    out = imported_set(export, tmp_path / "out")
    assert "mask" in volume_of(expect_whole(out, "myops", "Case1001", truth), "lge_sax")


def test_a_key_without_a_value_does_not_take_the_next_line(subjects, tmp_path):
    write_set(subjects[:1], "acdc", tmp_path / "export")
    info = tmp_path / "export" / "database" / "training" / "patient001" / "Info.cfg"
    info.write_text("ED: 1 \r\nES:  5\r\nGroup:\r\nHeight:\r\nNbFrame: 12\r\nWeight: 70,5\r\n")
    out = imported_set(tmp_path / "export", tmp_path / "out")
    tree = manifest_of(study_of(out, "acdc", "patient001"))
    assert "height_cm" not in tree
    assert "group" not in tree
    assert tree["weight_kg"] == 70.5
    [volume] = tree["volumes"]
    assert (volume["ed_phase"], volume["es_phase"]) == (0, 4)


def test_a_table_with_semicolons_and_decimal_commas(subjects, tmp_path):
    [truth] = write_set(subjects[:1], "mnms", tmp_path / "export")
    [table] = (tmp_path / "export").rglob("*.csv")
    text = table.read_text().replace(",", ";").replace("172", "172,0 ").replace("\n", "\r\n")
    table.write_bytes(text.replace(";Siemens;", ";Siém;").encode("cp1252"))
    out = imported_set(tmp_path / "export", tmp_path / "out")
    folder = expect_whole(out, "mnms", truth["subject"], truth)
    assert manifest_of(folder)["height_cm"] == 172.0


def test_information_of_several_patients_in_one_folder_is_nobodys(subjects, tmp_path):
    write_set(subjects[:2], "acdc", tmp_path / "export")
    out = imported_set(moved(tmp_path / "export", lambda path: path.name), tmp_path / "out")
    trees = [json.loads(path.read_text()) for path in out.glob("studies/*/study.json")]
    assert not any("height_cm" in tree for tree in trees)
    rejects = (out / "rejects.jsonl").read_text()
    assert rejects.count('"not_of_layout"') == 2, "Info.cfg, and the citation"


def test_cines_whose_slices_and_phases_lie_on_one_axis_are_refused_by_name():
    names = [
        f"CINE_MULTI/SAX_TR/{folder}/CINE_SAX_00{k}.nii.gz" for folder in ("image", "anno") for k in (1, 2)
    ]
    with pytest.raises(InputError, match=r"layout=cmr_multi: 4 files .* the distance of slices"):
        propose_layout(names)
