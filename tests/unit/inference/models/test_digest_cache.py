"""A file that did not change is read once; one that did is read again."""

import hashlib
import os
import time
from pathlib import Path

import pytest

from cardiolens.inference.models import identity as module
from cardiolens.inference.models.identity import known_digests


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the files that were read."""
    seen: list[str] = []

    def sha256(file: Path) -> str:
        seen.append(file.name)
        return hashlib.sha256(file.read_bytes()).hexdigest()

    monkeypatch.setattr(module, "sha256_of", sha256)
    monkeypatch.setattr(module, "_SETTLED_NS", -(10**9))  # as if every file were old
    return seen


def ask(kept: Path, file: Path) -> str:
    with known_digests(kept) as sha256:
        return sha256(file)


def test_a_file_is_read_once(tmp_path: Path, reads: list[str]) -> None:
    file, kept = tmp_path / "weights", tmp_path / "models" / "digests.json"
    file.write_bytes(b"one")
    assert ask(kept, file) == ask(kept, file) == hashlib.sha256(b"one").hexdigest()
    assert reads == ["weights"]


def test_a_file_that_was_changed_is_read_again_even_with_its_old_time(
    tmp_path: Path, reads: list[str]
) -> None:
    file, kept = tmp_path / "weights", tmp_path / "digests.json"
    file.write_bytes(b"one")
    ask(kept, file)
    state = file.stat()
    file.write_bytes(b"two")
    os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
    assert ask(kept, file) == hashlib.sha256(b"two").hexdigest()
    assert reads == ["weights", "weights"]


def test_a_file_that_changed_a_moment_ago_is_not_kept(tmp_path: Path) -> None:
    file, kept = tmp_path / "weights", tmp_path / "digests.json"
    file.write_bytes(b"one")
    ask(kept, file)
    assert not kept.exists()
    long_ago = time.time() - 60
    os.utime(file, (long_ago, long_ago))  # its change of anything is now
    ask(kept, file)
    assert not kept.exists()
