"""Files of a user are the user's own, or the group's where the sweep says so aloud."""

import logging
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.paths import PACKAGE
from cardiolens.config.compose import read_spec
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.permissions import be_private, follow, is_shared, set_privacy
from cardiolens.storage.places import run_of

DOORS = (
    *("sweep", "prepare", "judge", "report", "view", "export", "compare", "track", "bundle"),
    *("ingest", "confirm", "submit", "status", "work", "reread"),
    *("store", "questions", "review", "release", "doctor", "plugins", "completion"),
)


def spec_of(folder: Path, *, shared: bool) -> SweepSpec:
    words = [f"store={folder}/store", f"outputs={folder}/outputs", f"group_shared={str(shared).lower()}"]
    return read_spec(["model=[oracle]", *words])


def write(spec: SweepSpec) -> list[Path]:
    """What a sweep does: folders and files, at once and whole."""
    paths = [spec.store / "questions" / "a.json", run_of(spec).root / "groups" / "b.json"]
    for path in paths:
        disk.write_text(path, "{}")
    return [spec.store, run_of(spec).root, *(path.parent for path in paths), *paths]


def test_without_a_word_nobody_else_may_read(tmp_path: Path) -> None:
    be_private()
    spec = spec_of(tmp_path, shared=False)
    assert set_privacy(spec) is None
    for path in write(spec):
        assert path.stat().st_mode & 0o077 == 0, path


def test_a_shared_store_is_the_groups_and_nobody_elses(tmp_path: Path) -> None:
    be_private()
    spec = spec_of(tmp_path, shared=True)
    told = set_privacy(spec)
    assert told is not None
    assert "everybody in its group may read and change" in told
    assert str(spec.store) in told
    for path in write(spec):
        mode = path.stat().st_mode
        wanted = 0o770 | stat.S_ISGID if path.is_dir() else 0o660
        assert stat.S_IMODE(mode) == wanted, path
    assert set_privacy(spec) == told, "the same again"


def test_whether_it_is_shared_decides_no_number(tmp_path: Path) -> None:
    assert run_of(spec_of(tmp_path, shared=True)).root == run_of(spec_of(tmp_path, shared=False)).root


@pytest.mark.parametrize("first", [True, False])
def test_a_store_is_not_half_shared(tmp_path: Path, first: bool) -> None:
    be_private()
    set_privacy(spec_of(tmp_path, shared=first))
    write(spec_of(tmp_path, shared=first))
    with pytest.raises(InputError, match="group_shared=true"):
        set_privacy(spec_of(tmp_path, shared=not first))


def test_the_remedy_opens_a_store(tmp_path: Path) -> None:
    be_private()
    write(spec_of(tmp_path, shared=False))
    spec = spec_of(tmp_path, shared=True)
    for _ in range(2):  # the store, then the run
        with pytest.raises(InputError, match="open it once: ") as refused:
            set_privacy(spec)
        subprocess.run(str(refused.value).partition("open it once: ")[2], shell=True, check=True)
    assert set_privacy(spec)
    assert is_shared(spec.store / "questions")


def test_an_open_store_of_before_is_named_and_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    spec = spec_of(tmp_path, shared=False)
    spec.store.mkdir(mode=0o755)
    with caplog.at_level(logging.WARNING):
        set_privacy(spec)
    assert "others on this machine can read it; run chmod -R go=" in caplog.text
    assert stat.S_IMODE(spec.store.stat().st_mode) == 0o755


@pytest.mark.parametrize(("shared", "umask"), [(True, 0o007), (False, 0o077)])
def test_later_verbs_write_as_the_run_was_made(tmp_path: Path, shared: bool, umask: int) -> None:
    be_private()
    set_privacy(spec_of(tmp_path, shared=shared))
    be_private()
    follow(tmp_path / "store")
    assert os.umask(0o022) == umask


@pytest.mark.full
def test_every_verb_begins_with_private_files() -> None:
    program = """
import contextlib, importlib, io, os, sys
for door in sys.argv[1:]:
    os.umask(0o022)
    sys.argv = [door, "nothing=this"]
    with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
        importlib.import_module(f"cardiolens.commands.{door}").main()
    print(door, oct(os.umask(0o022)))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, *DOORS], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout.splitlines() == [f"{door} 0o77" for door in DOORS], done.stderr


def test_every_verb_is_among_them() -> None:
    doors = {path.stem for path in (PACKAGE / "commands").glob("*.py") if "\ndef main(" in path.read_text()}
    assert doors - {"head"} == set(DOORS), "head is attacked in tests/ray"
