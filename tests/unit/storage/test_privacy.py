"""Files of a user are the user's own."""

import logging
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.base.paths import PACKAGE
from cardiolens.commands.command import warn_of_open_folders
from cardiolens.config.compose import read_spec

DOORS = (
    *("sweep", "prepare", "judge", "report", "view", "export", "compare", "ingest", "confirm", "submit"),
    *("status", "work", "store", "questions", "review", "release", "doctor"),
)


def test_an_open_store_is_named_and_left(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    words = [f"store={tmp_path}/store", f"outputs={tmp_path}/outputs"]
    spec = read_spec(["model=[oracle]", *words])
    spec.store.mkdir(mode=0o755)
    with caplog.at_level(logging.WARNING):
        warn_of_open_folders(spec)
    assert "others on this machine can read it; run chmod -R go=" in caplog.text
    assert stat.S_IMODE(spec.store.stat().st_mode) == 0o755


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
        [sys.executable, "-c", program, *DOORS], capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.stdout.splitlines() == [f"{door} 0o77" for door in DOORS], done.stderr


def test_every_verb_is_among_them() -> None:
    files = (PACKAGE / "commands").glob("*.py")
    doors = {path.stem for path in files if "\nmain = verb(" in path.read_text()}
    assert doors - {"head"} == set(DOORS), "head is attacked in tests/ray"
