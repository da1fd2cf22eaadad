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
from cardiolens.config.conf_names import INDEX
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


def test_pipes_devices_and_links_are_named_and_not_opened(tmp_path: Path) -> None:
    names = ("pipe", "endless", "outside", "loop", "file")
    folder = folder_of(tmp_path, {name: {"bytes": 1, "sha256": "0"} for name in names})
    os.mkfifo(folder / "pipe")
    (folder / "endless").symlink_to("/dev/zero")
    (folder / "outside").symlink_to("/etc")
    (folder / "loop").symlink_to(folder)
    (folder / "file").symlink_to(folder / "studies" / "a" / "study.json")
    lines = list(differences(folder))
    assert {line.partition(":")[0] for line in lines if "a link, a pipe or a device" in line} == set(names)


@pytest.mark.parametrize("text", ["[" * 100_000, "\xff", "null", '{"files": []}'])
def test_an_index_of_no_use_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / INDEX).write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="is no release"):
        list(differences(tmp_path))


def test_half_a_character_in_a_name_is_printed_as_an_escape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = folder_of(tmp_path, {"\ud800\x1b[2J": {}})
    (folder / os.fsdecode(b"\xff\n.txt")).write_text("x")
    assert verify(folder) == 1
    assert "\x1b" not in capsys.readouterr().out


def test_folders_a_thousand_deep_are_walked(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, {"studies/a/study.json": {}})
    for depth in range(1, 1501):
        os.mkdir(folder / ("a/" * depth))
    (folder / ("a/" * 1500) / "x").write_text("x")
    try:
        assert any("a/a/x: is not of this release" in line for line in differences(folder))
    finally:
        subprocess.run(["rm", "-rf", folder / "a"], check=True)  # Python's own removal calls itself


@pytest.mark.parametrize("name", ["yaml.py", "studies/a/run.sh"])
def test_what_no_release_holds_is_named_though_the_index_lists_it(tmp_path: Path, name: str) -> None:
    folder = folder_of(tmp_path, {name: {"bytes": 1, "sha256": hashlib.sha256(b"x").hexdigest()}})
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("x")
    assert any(line.startswith(f"{name}: is no file of a release") for line in differences(folder))
