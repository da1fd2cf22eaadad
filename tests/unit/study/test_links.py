"""Symbolic links in folders of studies: into allowed folders they are followed, all others are refused."""

import os
from pathlib import Path

import pytest
from study_folders import study, volume

from cardiolens.base.errors import InputError
from cardiolens.config.dataset import DatasetSpec, Windows
from cardiolens.study.group import Outcome, prepare_group
from cardiolens.study.manifest import read_study
from cardiolens.workflow.steps.prepare_studies import _read_studies

pytestmark = pytest.mark.timeout(60)
LEADS_OUT = "leads out of the study folder; expected a file inside it"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder of one study, whose volume and mask are moved into an archive elsewhere."""
    folder = tmp_path / "studies" / "S1"
    mask = {"path": "mask.nii.gz"}
    study(folder, volume(folder) | {"mask": mask})
    (tmp_path / "archive").mkdir()
    (folder / "cine_sax.nii.gz").rename(tmp_path / "archive" / "Jane-Roe.nii.gz")
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "Jane-Roe.nii.gz").write_bytes(b"of another project")
    (folder / "mask.nii.gz").symlink_to(tmp_path / "archive" / "Jane-Roe.nii.gz")
    return tmp_path


def dataset(place: Path, *roots: str, allow: bool = True) -> DatasetSpec:
    link_roots = tuple(place / root for root in roots or ("studies",)) if allow else ()
    files = {"studies": place / "studies", "questions": place / "questions.jsonl"}
    return DatasetSpec(name="own", **files, link_roots=link_roots)


def linked(place: Path, target: str | Path) -> Path:
    """The study, with a link in the place of its volume."""
    path = place / "studies" / "S1" / "cine_sax.nii.gz"
    path.symlink_to(target)
    return path.parent


def outcome(place: Path, spec: DatasetSpec) -> Outcome:
    folders = [place / "studies" / "S1"]
    (one,) = prepare_group(place / "store", "p.parquet", folders, Windows(), roots=spec.roots)
    return one


def test_links_into_a_named_folder_are_read_without_a_copy(place):
    folder = linked(place, place / "archive" / "Jane-Roe.nii.gz")
    spec = dataset(place, "archive")
    assert not _read_studies(spec)[1]
    done = outcome(place, spec)
    assert done.error == ""
    assert (folder / "cine_sax.nii.gz").is_symlink()


def test_a_changed_target_is_noticed(place):
    linked(place, place / "archive" / "Jane-Roe.nii.gz")
    spec = dataset(place, "archive")
    before = outcome(place, spec).record.state
    os.utime(place / "archive" / "Jane-Roe.nii.gz", ns=(1, 1))
    assert outcome(place, spec).record.state != before


def test_a_link_to_another_study_needs_permission_alone(place):
    other = study(place / "studies" / "S2")
    linked(place, "../S2/cine_sax.nii.gz")
    (place / "studies" / "S1" / "mask.nii.gz").unlink()
    (place / "studies" / "S1" / "mask.nii.gz").symlink_to(other / "cine_sax.nii.gz")
    assert outcome(place, dataset(place)).error == ""
    refusal = outcome(place, dataset(place, allow=False)).error
    assert LEADS_OUT in refusal
    assert refusal.endswith(", or name the folder of its file in dataset.link_roots")


@pytest.mark.parametrize(
    "target",
    ["/etc/hostname", "/dev/zero", "private/Jane-Roe.nii.gz", ".."],
)
def test_a_link_out_of_the_named_folders_is_refused_by_its_name_alone(place, target):
    folder = linked(place, target if target[0] in "/." else place / target)
    if target == "..":  # the folder of studies itself is allowed, and is no file
        assert "Is a directory" in outcome(place, dataset(place, "archive")).error
        return
    with pytest.raises(InputError) as caught:
        read_study(folder, dataset(place, "archive").roots)
    assert str(caught.value).startswith(f"cine_sax.nii.gz: {LEADS_OUT}")
    assert "Jane" not in str(caught.value)
    assert target not in str(caught.value)


@pytest.mark.parametrize("name", ["cine_sax.nii.gz", "mask.nii.gz", "study.json"])
def test_the_manifest_and_masks_are_held_to_the_same_rule(place, name):
    folder = linked(place, place / "archive" / "Jane-Roe.nii.gz")
    (folder / name).unlink()
    (folder / name).symlink_to(place / "private" / "Jane-Roe.nii.gz")
    with pytest.raises(InputError, match=f"^{name}: {LEADS_OUT}"):
        read_study(folder, dataset(place, "archive").roots)


def test_a_link_within_a_named_folder_that_leads_on_is_refused(place):
    (place / "archive" / "onward").symlink_to(place / "private")
    folder = linked(place, place / "archive" / "onward" / "Jane-Roe.nii.gz")
    with pytest.raises(InputError, match=LEADS_OUT):
        read_study(folder, dataset(place, "archive").roots)


@pytest.mark.parametrize("path", ["../S2/cine_sax.nii.gz", "/etc/hostname", "", "a\x00b"])
def test_a_path_that_leads_out_is_no_link(place, path):
    study(place / "studies" / "S2")
    folder = place / "studies" / "S1"
    study(folder, volume(folder) | {"path": path})
    with pytest.raises(InputError, match=r"leads out of the study folder.*copy the file into the folder$"):
        read_study(folder, dataset(place, "archive").roots)


def test_loops_end(place):
    folder = place / "studies" / "S1"
    linked(place, "cine_sax.nii.gz")
    with pytest.raises(InputError, match=r"^cine_sax\.nii\.gz: "):
        read_study(folder, dataset(place, "archive").roots)
    (folder / "cine_sax.nii.gz").unlink()
    (place / "studies" / "round").symlink_to(place / "studies")
    (place / "studies" / "a").symlink_to("b")
    (place / "studies" / "b").symlink_to("a")
    (place / "archive" / "back").symlink_to(place / "archive")
    linked(place, place / "archive" / "back" / "back" / "Jane-Roe.nii.gz")
    studies, failed = _read_studies(dataset(place, "archive"))
    assert [one.study_id for one in studies] == ["S1"]
    assert failed.keys() == {"round", "a", "b"}
    assert all("leads nowhere" in failed[name] for name in "ab")


def test_a_device_behind_a_link_is_refused_even_where_its_folder_is_named(place):
    linked(place, "/dev/zero")
    assert "it is a device, not a file" in outcome(place, dataset(place, "archive", "/dev")).error


def test_a_study_folder_may_be_a_link_where_links_are_allowed(place):
    linked(place, place / "archive" / "Jane-Roe.nii.gz")
    (place / "studies" / "S1").rename(place / "archive" / "S1")
    (place / "studies" / "S1").symlink_to(place / "archive" / "S1")
    assert not _read_studies(dataset(place, "archive"))[1]
    _, failed = _read_studies(dataset(place, allow=False))
    assert "is a link that leads out of dataset.studies" in failed["S1"]
    assert "dataset.link_roots" in failed["S1"]
