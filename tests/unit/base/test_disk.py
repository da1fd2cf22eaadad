"""The seam of writes: whole files or none, drafts that take their name when whole, private files."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardiolens.base import disk
from cardiolens.base.errors import InputError, RunError
from cardiolens.base.private_file import check_private, is_private_folder, read_or_make_key

EVENTS = list[tuple[str, str]]


@pytest.fixture
def events() -> EVENTS:
    told: EVENTS = []
    disk.hooks.append(lambda kind, path: told.append((kind, path.name)))
    yield told
    disk.hooks.clear()


def fail_at(number: int) -> None:
    """Fail once, at the event of a number, as a full disk does."""
    count = 0

    def hook(kind: str, path: Path) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise OSError(28, "No space left on device", str(path))

    disk.hooks.append(hook)


def write_two(folder: Path) -> None:
    with disk.draft_folder(folder) as draft:
        disk.write_draft(draft / "a" / "one", b"1")
        disk.write_text(draft / "two", "2")


def content(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): p.read_text() for p in folder.rglob("*") if p.is_file()}


def test_a_draft_has_its_name_when_it_is_whole(tmp_path: Path, events: EVENTS) -> None:
    write_two(tmp_path / "out")
    assert content(tmp_path / "out") == {"a/one": "1", "two": "2"}
    assert events.index(("rename", "out")) > max(at for at, event in enumerate(events) if event[0] == "write")
    assert os.listdir(tmp_path) == ["out"]


def test_a_failure_at_any_event_leaves_nothing_or_all(tmp_path: Path, events: EVENTS) -> None:
    write_two(tmp_path / "count")
    for number in range(1, len(events) + 1):
        disk.hooks.clear()
        fail_at(number)
        folder = tmp_path / str(number)
        with pytest.raises(RunError, match="cannot be written"):
            write_two(folder)
        disk.hooks.clear()
        assert not folder.exists() or content(folder) == {"a/one": "1", "two": "2"}
        if folder.exists():
            continue  # only the last fsync failed, after the rename
        write_two(folder)
        assert content(folder) == {"a/one": "1", "two": "2"}


KILLED = """
import os, signal, sys
from pathlib import Path
from cardiolens.base import disk
from test_disk import write_two
count = 0
def hook(kind, path):
    global count
    count += 1
    if count == int(sys.argv[2]):
        os.kill(os.getpid(), signal.SIGKILL)
disk.hooks.append(hook)
write_two(Path(sys.argv[1]))
"""


@pytest.mark.parametrize("number", range(1, 16, 2))
def test_a_kill_at_any_event_costs_one_more_try(tmp_path: Path, number: int) -> None:
    command = [sys.executable, "-c", KILLED, str(tmp_path / "out"), str(number)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}
    done = subprocess.run(command, env=environment, check=False, capture_output=True)
    assert done.returncode in (-signal.SIGKILL, 0), done.stderr
    if not (tmp_path / "out").exists():
        write_two(tmp_path / "out")
    assert content(tmp_path / "out") == {"a/one": "1", "two": "2"}
    assert os.listdir(tmp_path) == ["out"]


def test_a_private_file_is_private_whatever_was_there(tmp_path: Path) -> None:
    path = tmp_path / "links"
    path.write_text("old")
    path.chmod(0o644)
    disk.write_private(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    disk.create(tmp_path / "key", b"k")
    assert stat.S_IMODE((tmp_path / "key").stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        disk.create(tmp_path / "key", b"other")
    assert (tmp_path / "key").read_bytes() == b"k"


def test_a_file_where_a_folder_is_expected_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("kept")
    with pytest.raises(RunError, match=r"file/one: cannot be written \("):
        disk.write_text(tmp_path / "file" / "one", "1")
    assert content(tmp_path) == {"file": "kept"}


CHANGES: dict[str, Callable[[Path], object]] = {
    "remove": disk.remove,
    "copy of a folder": lambda path: disk.copy_tree(path.parent, path.parent.with_name("other")),
    "log": disk.open_log,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_that_fails_is_one_sentence_and_an_error_of_the_system(
    tmp_path: Path, events: EVENTS, change: Callable[[Path], object]
) -> None:
    path = tmp_path / "in" / "one"
    path.parent.mkdir()
    path.write_text("1")
    fail_at(1)
    with pytest.raises(
        RunError, match=r"^\S+: cannot be written \(No space left on device\); [^\n]*$"
    ) as error:
        change(path)
    assert isinstance(error.value, OSError)
    assert error.value.errno == errno.ENOSPC
    assert path.read_text() == "1"


def test_an_append_that_fails_leaves_the_file_as_it_was(tmp_path: Path, events: EVENTS) -> None:
    path = tmp_path / "log"
    handle = disk.open_log(path)
    disk.append(handle, b"first\n", path)
    fail_at(2)  # written, and not made durable
    with pytest.raises(RunError, match="cannot be written"):
        disk.append(handle, b"second\n", path)
    os.close(handle)
    assert path.read_bytes() == b"first\n"


def test_what_callers_wait_for_keeps_its_type(tmp_path: Path) -> None:
    handles = [disk.open_log(tmp_path / "log") for _ in range(2)]
    disk.lock(handles[0], tmp_path / "log")
    with pytest.raises(BlockingIOError):
        disk.lock(handles[1], tmp_path / "log", wait=False)
    for handle in handles:
        os.close(handle)


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


def test_a_key_is_made_once_and_one_that_is_too_short_or_open_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in" / "key"
    made = read_or_make_key(path, "key=in/key", "do harm", "make another")
    assert len(made) == 32
    assert read_or_make_key(path, "key=in/key", "do harm", "make another") == made
    path.chmod(0o640)
    with pytest.raises(InputError, match=r"mode 640\), and with it do harm; .*, or make another"):
        read_or_make_key(path, "key=in/key", "do harm", "make another")
    path.write_text("00" * 31)
    with pytest.raises(InputError, match="key=in/key: holds no key; expected 64 or more hex digits"):
        read_or_make_key(path, "key=in/key", "do harm", "make another")
