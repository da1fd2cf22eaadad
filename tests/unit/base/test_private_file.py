"""Secrets in files: closed to all but their owner, or refused with the remedy."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base.errors import InputError
from cardiolens.base.private_file import check_private, is_private_folder


@given(st.integers(0, 0o777))
def test_a_file_is_private_if_nobody_but_its_owner_has_access(
    tmp_path_factory: pytest.TempPathFactory, mode: int
) -> None:
    path = tmp_path_factory.mktemp("secret") / "key"
    path.write_text("secret")
    path.chmod(mode)
    if mode & 0o077:
        with pytest.raises(InputError, match=rf"mode {mode:o}\), and with it do harm; run chmod 600 \S+, or"):
            check_private(path, "key", "do harm", ", or else")
    else:
        check_private(path, "key", "do harm")


def test_a_file_of_another_owner_is_refused_where_it_must_be_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "key"
    path.touch(0o600)
    owner = path.stat().st_uid
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    check_private(path, "key", "do harm")
    with pytest.raises(InputError, match=f"mode 600, owner {owner}"):
        check_private(path, "key", "do harm", owned=True)


def test_a_file_that_is_missing_is_no_private_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        check_private(tmp_path / "none", "key", "do harm")


def test_nobody_is_told_to_close_a_folder(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    check_private(tmp_path, "key", "do harm")


def test_a_link_to_a_private_folder_is_none(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to("own")
    (tmp_path / "open").mkdir(mode=0o755)
    assert [is_private_folder(tmp_path / name) for name in ("own", "link", "open")] == [True, False, False]
