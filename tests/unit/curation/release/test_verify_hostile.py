"""A folder that strangers made, verified: a sentence for each, no hang, no traceback."""

import hashlib
import json
import os
import subprocess
from contextlib import redirect_stdout, suppress
from io import StringIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.released import INDEX
from cardiolens.curation.release.verify import differences, verify

pytestmark = pytest.mark.timeout(30)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


def folder_of(path: Path, files: object, manifest: str = "{}") -> Path:
    (path / "studies" / "a").mkdir(parents=True)
    (path / "studies" / "a" / "study.json").write_text(manifest)
    (path / INDEX).write_text(json.dumps({"schema": "release-1", "files": files}))
    return path


@settings(max_examples=150, deadline=None)
@given(files=ANYTHING | st.dictionaries(st.just("studies/a/study.json"), ANYTHING), manifest=ANYTHING)
def test_values_of_any_type_are_taken_as_they_come(files, manifest, tmp_path_factory) -> None:
    folder = folder_of(tmp_path_factory.mktemp("release"), files, json.dumps(manifest))
    with suppress(InputError), redirect_stdout(StringIO()) as printed:
        verify(folder)
        assert printed.getvalue().count("\n") == len(list(differences(folder))) + 2  # signature and sum


@settings(max_examples=50, deadline=None)
@given(cohort=ANYTHING, patient=ANYTHING)
def test_cohorts_of_any_type_are_taken_as_they_come(cohort, patient, tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("release")
    manifest = json.dumps({"cohort": cohort, "patient_id": patient})
    list(differences(folder_of(folder, {"studies/a/study.json": {}}, manifest)))


def test_pipes_devices_and_links_are_named_and_not_opened(tmp_path: Path) -> None:
    names = ("pipe", "endless", "outside", "loop")
    folder = folder_of(tmp_path, {name: {"bytes": 1, "sha256": "0"} for name in names})
    os.mkfifo(folder / "pipe")
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "outside").symlink_to("/etc")
    (folder / "loop").symlink_to(folder)
    lines = list(differences(folder))
    assert {line.partition(":")[0] for line in lines if "a link, a pipe or a device" in line} == set(names)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"files": ' * 50_000, "\xff", "", "null", '{"files": []}'])
def test_an_index_of_no_use_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / INDEX).write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="is no release"):
        list(differences(tmp_path))


def test_an_index_that_is_a_pipe_or_a_folder_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / INDEX)
    with pytest.raises(InputError, match="is no release"):
        list(differences(tmp_path))
    (tmp_path / INDEX).unlink()
    (tmp_path / INDEX).mkdir()
    with pytest.raises(InputError, match="is no release"):
        list(differences(tmp_path))


def test_a_manifest_nested_deeply_costs_one_line(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"studies/a/study.json": {}}, "[" * 100_000)
    assert list(differences(folder)) == ["studies/a/study.json: is not what was released"]


@settings(max_examples=100, deadline=None)
@given(index=ANYTHING, whole=st.booleans())
def test_an_index_of_any_value_is_answered_with_a_sentence(index, whole, tmp_path_factory) -> None:
    folder = folder_of(tmp_path_factory.mktemp("release"), {})
    told = index if whole else {"schema": "release-1", "files": index}
    (folder / INDEX).write_text(json.dumps(told))
    with suppress(InputError):
        assert verify(folder) in {0, 1}


def test_half_a_character_in_a_name_is_printed_as_an_escape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(tmp_path, {"\ud800\x1b[2J": {}})
    (folder / os.fsdecode(b"\xff\n.txt")).write_text("x")
    assert verify(folder) == 1
    assert "\x1b" not in capsys.readouterr().out


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/null", "/proc/self/mem"])
def test_an_index_that_leads_to_a_device_is_refused(tmp_path: Path, target: str) -> None:
    (tmp_path / INDEX).symlink_to(target)
    with pytest.raises(InputError, match="is no release"):
        list(differences(tmp_path))


def test_an_index_that_would_take_all_memory_is_not_parsed(tmp_path: Path) -> None:
    with (tmp_path / INDEX).open("wb") as file:
        file.truncate(25 << 20)
    with pytest.raises(InputError, match="expected at most 25,165,824"):
        list(differences(tmp_path))


@pytest.mark.parametrize("name", ["missing", "release.json"])
def test_what_is_no_folder_is_refused(tmp_path: Path, name: str) -> None:
    folder_of(tmp_path, {})
    with pytest.raises(InputError, match=r"is no release .* give the folder"):
        list(differences(tmp_path / name))


def test_a_folder_in_place_of_a_file_is_a_missing_file(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"README.md": {}, "studies/a/study.json": {}})
    (folder / "README.md").mkdir()
    assert "README.md: is missing" in list(differences(folder))


def test_a_sparse_terabyte_is_not_read(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path, {"studies/a/x.nii": {"bytes": 1 << 40, "sha256": "0"}, "studies/a/study.json": {}}
    )
    with (folder / "studies" / "a" / "x.nii").open("wb") as file:
        file.truncate(1 << 40)
    assert any("x.nii: has 1,099,511,627,776 bytes" in line for line in differences(folder))


def test_folders_a_thousand_deep_are_walked(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"studies/a/study.json": {}})
    for depth in range(1, 1501):
        os.mkdir(folder / ("a/" * depth))
    (folder / ("a/" * 1500) / "x").write_text("x")
    try:
        assert any("a/a/x: is not of this release" in line for line in differences(folder))
    finally:
        subprocess.run(["rm", "-rf", folder / "a"], check=True)  # Python's own removal calls itself


@pytest.mark.parametrize("name", ["yaml.py", "conf/model/oracle.yaml", "conf/sweep.yaml", "studies/a/run.sh"])
def test_what_no_release_holds_is_named_though_the_index_lists_it(tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path, {name: {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}})
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    assert any(line.startswith(f"{name}: is no file of a release") for line in differences(folder))


def test_a_thousand_lines_are_printed_and_the_others_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(folder_of(tmp_path, {f"x{number}": {} for number in range(1500)})) == 1
    lines = capsys.readouterr().out.splitlines()
    assert (len(lines), lines[-2]) == (1003, "and 501 more")
