"""The version of a build follows from the number of the package and the tags of git."""

import os
import re
import runpy
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WHO = {f"GIT_{role}_{what}": "a@b" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}


@pytest.fixture
def version(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], str]:
    monkeypatch.delenv("CARDIOLENS_VERSION", raising=False)
    return runpy.run_path(str(ROOT / "requirements" / "version.py"))["version"]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A package of number 0.3.0, committed twice."""
    (tmp_path / "cardiolens").mkdir()
    (tmp_path / "cardiolens" / "__init__.py").write_text('__version__ = "0.3.0"\n')
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "one")
    git(tmp_path, "commit", "-qm", "two", "--allow-empty")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    environment = {**os.environ, **WHO}
    subprocess.run(["git", "-C", folder, *words], env=environment, check=True, capture_output=True)


def test_a_commit_is_named_away_from_a_tag_and_not_at_it(version, tree: Path) -> None:
    assert re.fullmatch(r"0\.3\.0\.dev2\+g[0-9a-f]{8}", version(tree))
    git(tree, "tag", "v0.3.0")
    assert version(tree) == "0.3.0"
    git(tree, "commit", "-qm", "three", "--allow-empty")
    assert re.fullmatch(r"0\.3\.0\.dev1\+g[0-9a-f]{8}", version(tree))


def test_changed_files_are_no_release(version, tree: Path) -> None:
    git(tree, "tag", "v0.3.0")
    (tree / "cardiolens" / "__init__.py").write_text('__version__ = "0.3.0"\n# changed\n')
    assert re.fullmatch(r"0\.3\.0\.dev0\+g[0-9a-f]{8}\.dirty", version(tree))


def test_a_tag_of_another_number_is_refused(version, tree: Path) -> None:
    git(tree, "tag", "v0.4.0")
    with pytest.raises(SystemExit, match=r"tag v0\.4\.0 is on .* says 0\.3\.0; tag it v0\.3\.0"):
        version(tree)


def test_without_git_the_version_is_given_or_packed_or_not_known(
    version, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(tree / ".git")
    assert version(tree) == "0.3.0.dev0+unknown"
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\nName: cardiolens\nVersion: 0.3.0.dev7+gabcdef01\n")
    assert version(tree) == "0.3.0.dev7+gabcdef01"
    monkeypatch.setenv("CARDIOLENS_VERSION", "0.3.0")
    assert version(tree) == "0.3.0"
