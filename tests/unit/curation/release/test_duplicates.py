"""Duplicates: a patient under two ids is found, also in another window, and so is a public study."""

import json
from pathlib import Path

import nibabel as nib
import numpy as np
import pytest

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import PhantomSpec
from cardiolens.phantom.phantom_cohort import make_cohort
from tests.unit.given_words import release

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def phantoms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("phantoms")
    make_cohort(PhantomSpec(n_sampled=3), root)
    return root


def words(phantoms: Path, out: Path, *more: str) -> list[str]:
    return [
        *(f"questions={phantoms}/questions.jsonl", f"studies={phantoms}/studies", f"out={out}"),
        *("name=ours", "licence=CC-BY-4.0", "cohorts=dev:0.5,test:0.5", *more),
    ]


def with_copy(phantoms: Path, root: Path) -> Path:
    """The phantoms, and one of them again under another id, brighter and noisier."""
    (root / "studies").mkdir(parents=True)
    folders = sorted((phantoms / "studies").iterdir())
    for folder in folders:
        (root / "studies" / folder.name).symlink_to(folder)
    source, copy = folders[0], root / "studies" / "AGAIN"
    copy.mkdir()
    manifest = json.loads((source / "study.json").read_text())
    rng = np.random.default_rng(40)
    for volume in manifest["volumes"]:
        image = nib.load(source / volume["path"])
        values = np.asarray(image.dataobj, np.float32)
        values = values * 1.4 + rng.normal(0, 0.01 * np.ptp(values), values.shape) + 7
        nib.save(nib.Nifti1Image(values.astype(np.int16), image.affine), copy / volume["path"])
        volume.pop("sha256", None)
        volume.pop("mask", None)
    (copy / "study.json").write_text(json.dumps(manifest | {"study_id": "AGAIN", "patient_id": "SOMEBODY"}))
    lines = (phantoms / "questions.jsonl").read_text().splitlines()
    lines.append(json.dumps({"study": "AGAIN", "subtask": "C10", "answer": ["A"], "origin": "phantom"}))
    (root / "questions.jsonl").write_text("\n".join(lines) + "\n")
    return root


def test_one_heart_under_two_patients_is_refused_until_it_is_named(phantoms: Path, tmp_path: Path) -> None:
    double = with_copy(phantoms, tmp_path / "double")
    with pytest.raises(InputError, match="1 pairs of studies of several patients") as error:
        release(words(double, tmp_path / "out"))
    assert "AGAIN" in (tmp_path / "out-duplicates.txt").read_text()
    assert not (tmp_path / "out").exists()
    name = str(error.value).rpartition("add ")[2]
    assert release(words(double, tmp_path / "out", name)) == 0
    index = json.loads((tmp_path / "out" / "release.json").read_text())
    assert index["perceptual"]["pairs"] == 1
    card = (tmp_path / "out" / "README.md").read_text()
    assert "1 pairs of studies of several patients show the same" in card
    assert "* **1 pairs of patients show the same pictures**" in card


def test_a_study_of_a_public_set_is_found_and_one_that_is_none_is_not(phantoms: Path, tmp_path: Path) -> None:
    double = with_copy(phantoms, tmp_path / "double")
    public = tmp_path / "public"
    public.mkdir()
    (double / "studies" / "AGAIN").rename(public / "AGAIN")
    with pytest.raises(InputError, match="1 a study of a public set"):
        release(words(phantoms, tmp_path / "out", f"known=[{public}]"))
    with pytest.raises(InputError, match=r"known=.*holds no study"):
        release(words(phantoms, tmp_path / "out", f"known=[{tmp_path}/none]"))
    make_cohort(PhantomSpec(n_sampled=1, seed=77), tmp_path / "others")
    assert release(words(phantoms, tmp_path / "out", f"known=[{tmp_path}/others/studies]")) == 0
    facts = json.loads((tmp_path / "out" / "release.json").read_text())["perceptual"]
    assert (facts["pairs"], facts["known_sets"], facts["known_pairs"]) == (0, 1, 0)
    assert "; 0 show a study of 1 public sets." in (tmp_path / "out" / "README.md").read_text()
