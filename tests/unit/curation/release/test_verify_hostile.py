"""A folder that strangers made, verified: a sentence for each, no hang, no traceback."""

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.config.released import INDEX
from cardiolens.curation.release.verify import differences

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
    with suppress(InputError):
        assert all("\n" not in line for line in differences(folder))


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
