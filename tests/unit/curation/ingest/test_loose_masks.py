"""A mask that belongs to no volume, or to another: a person gives it, to one study or to all of a set."""

import json
from email.message import Message
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.curation.ingest.confirm.confirm_server import Change, Desk
from cardiolens.curation.ingest.confirm.imported import read_imported
from cardiolens.curation.ingest.decisions import Choice, Ledger
from cardiolens.show.local_server import Request
from cardiolens.study.volume_manifest import DisplayTransform
from tests.unit.curation.ingest.set_phantoms import (
    hearts,
    imported_set,
    manifest_of,
    proposals_of,
    study_of,
    write_set,
)

SHOWN = DisplayTransform(transpose=True)


def loosen(path: Path) -> np.ndarray:
    """Spoil the voxel size of a mask, so that it fits no image; return its labels."""
    image = nib.load(path)
    labels = np.asarray(image.dataobj)
    spoilt = nib.Nifti1Image(labels, np.diag([-1.0, -1.0, 1.0, 1.0]))
    spoilt.header["pixdim"][1:4] = [5.0, 5.0, 5.0]
    path.write_bytes(spoilt.to_bytes())
    path.rename(path.with_suffix(""))
    return labels


@pytest.fixture(scope="module")
def cine(tmp_path_factory) -> tuple[Path, Path, np.ndarray]:
    """A heart of ACDC whose mask of end-systole is loose: folder, its study, the labels."""
    root = tmp_path_factory.mktemp("loose")
    write_set(hearts(("PH-NORMAL",)), "acdc", root / "in")
    _, late = sorted((root / "in").rglob("*_gt.nii.gz"))
    labels = loosen(late)
    out = imported_set(root / "in", root / "out")
    return root, study_of(out, "acdc", "patient001"), labels


def proposals(study: Path) -> dict:
    path = study.parents[1] / "proposals" / study.name / "proposals.json"
    return json.loads(path.read_text())


def accepted(proposal: dict, **changes: object) -> Choice:
    entry = proposal["entry"]
    told = {"sequence": proposal["sequence"], "view": proposal["view"], "display": entry["display_transform"]}
    told |= {"along_normal": proposal["along_normal"], "base_first": True, "mask": True}
    return Choice(status="confirmed", **(told | changes))


def decided(root: Path, study: Path, choice: Choice) -> None:
    [proposal] = [each for each in proposals(study)["proposals"] if each["volume_id"] == "cine_sax"]
    ledger = Ledger(root / "decisions.jsonl")
    ledger.decide(study.name, {proposal["stack"]: choice})
    ledger.close()
    imported_set(root / "in", root / "out", decisions=root / "decisions.jsonl")
    (root / "decisions.jsonl").unlink()


def test_a_loose_mask_is_listed_with_the_reason_and_a_picture(cine):
    _, study, labels = cine
    tree = proposals(study)
    loose = [mask for mask in tree["masks"] if mask["why"]]
    assert [mask["why"] for mask in loose] == ["its voxels have another size than its image's"]
    [cine_proposal] = [each for each in tree["proposals"] if each["volume_id"] == "cine_sax"]
    assert loose[0]["mask"] in cine_proposal["fitting_masks"]
    drawn = nib.load(study.parents[1] / "proposals" / study.name / loose[0]["path"])
    assert np.array_equal(np.asarray(drawn.dataobj)[..., 0], labels)


def test_a_mask_that_is_given_is_of_the_phase_that_is_said(cine):
    root, study, labels = cine
    tree = proposals(study)
    [loose] = [mask["mask"] for mask in tree["masks"] if mask["why"]]
    [proposal] = [each for each in tree["proposals"] if each["volume_id"] == "cine_sax"]
    before = np.asarray(nib.load(study / "masks" / "cine_sax.nii").dataobj)
    decided(root, study, accepted(proposal, loose_masks={loose: 7}))
    given_labels = np.asarray(nib.load(study / "masks" / "cine_sax.nii").dataobj)
    assert np.array_equal(given_labels[..., 7], labels), "patient001 is stored from the base"
    assert np.array_equal(np.delete(given_labels, 7, axis=3), np.delete(before, 7, axis=3))
    assert manifest_of(study)["volumes"][0]["mask"]["labels"] == "acdc"


def test_given_alone_it_replaces_the_masks_that_are_not_of_the_volume(cine):
    root, study, _ = cine
    tree = proposals(study)
    [loose] = [mask["mask"] for mask in tree["masks"] if mask["why"]]
    [proposal] = [each for each in tree["proposals"] if each["volume_id"] == "cine_sax"]
    decided(root, study, accepted(proposal, loose_masks={loose: 3}, mask=False))
    labelled = np.asarray(nib.load(study / "masks" / "cine_sax.nii").dataobj).any(axis=(0, 1, 2))
    assert np.flatnonzero(labelled).tolist() == [3]


@pytest.mark.parametrize(
    "wrong", [{"loose": None}, {"loose": 400}, {"Q0": 3}], ids=["no phase", "late", "other"]
)
def test_a_mask_that_does_not_fit_is_refused_by_the_import(cine, wrong, capsys):
    root, study, _ = cine
    tree = proposals(study)
    [loose] = [mask["mask"] for mask in tree["masks"] if mask["why"]]
    [proposal] = [each for each in tree["proposals"] if each["volume_id"] == "cine_sax"]
    masks = {loose if name == "loose" else name: phase for name, phase in wrong.items()}
    decided(root, study, accepted(proposal, loose_masks=masks))
    assert "no such mask fits the stack" in capsys.readouterr().out
    imported_set(root / "in", root / "out")


def asked(desk: Desk, number: int, choice: Choice, *, everywhere: bool = False) -> dict:
    study = desk.studies[number]
    stack = next(each["stack"] for each in study.proposals if each["status"] != "left_out")
    revision = desk.ledger.decisions.revision(study.study_id)
    change = Change(study_id=study.study_id, revision=revision, stacks={stack: choice}, everywhere=everywhere)
    return json.loads(
        desk.decide(Request(("decide",), "", Message(), 0, change.model_dump_json().encode())).content
    )


def test_the_same_mask_is_given_in_all_studies_where_it_is_sure(tmp_path):
    write_set(hearts(("PH-NORMAL", "PH-ICM-LAD", "PH-HCM-ASH")), "emidec", tmp_path / "in")
    labels = {path.name[5:9]: loosen(path) for path in sorted((tmp_path / "in").glob("*/*/Contours/*.gz"))}
    out = imported_set(tmp_path / "in", tmp_path / "out")
    assert not list(out.glob("studies/*/masks/*"))
    desk = Desk(read_imported(out), Ledger(tmp_path / "decisions.jsonl"))
    first = desk.studies[0]
    [proposal] = [each for each in first.proposals if each["status"] != "left_out"]
    [mask] = first.masks
    refusal = asked(desk, 0, accepted(proposal, loose_masks={mask["mask"]: 0}))
    assert "no such mask fits this series" in refusal["error"], "a still picture has no phases to choose from"
    told = asked(desk, 0, accepted(proposal, loose_masks={mask["mask"]: None}), everywhere=True)
    assert set(told["others"]) == {study.study_id for study in desk.studies[1:]}
    desk.ledger.close()
    imported_set(tmp_path / "in", out, decisions=tmp_path / "decisions.jsonl")
    for name, expected in labels.items():
        study = study_of(out, "emidec", f"Case_{name}")
        if not study.exists():
            study = study_of(out, "emidec", name)
        written = np.asarray(nib.load(study / "masks" / "lge_sax.nii").dataobj)
        assert np.array_equal(written, expected) or np.array_equal(written, expected[:, :, ::-1])
        assert [each["status"] for each in proposals_of(out, study)] == ["taken"]
