"""A file or folder that may not be read or written ends a verb with a line, and no traceback."""

import errno
import os
from pathlib import Path

import pytest

from cardiolens.commands.command import Action, verb
from cardiolens.config.sweep import SweepSpec


def refusing(number: int, place: str | None) -> list[int]:
    """The exit codes of a verb on a sweep, and of one on other words."""

    def act(words: SweepSpec | list[str]) -> int:
        raise OSError(number, os.strerror(number), place)

    words = {SweepSpec: ["model=[oracle]"], None: ["x"]}
    return [verb("", None, Action(kind, act))(given) for kind, given in words.items()]


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.EACCES, "change its permissions"),
        (errno.EROFS, "name another place"),
        (errno.ENOSPC, "free space there"),
        (errno.EDQUOT, "free space there"),
    ],
)
def test_what_the_disk_refuses_is_told_with_a_remedy(
    number: int,
    remedy: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert refusing(number, "/hearts/locked.nii.gz") == [1, 1]
    for told in capsys.readouterr().err.splitlines():
        assert told.startswith(f"error: /hearts/locked.nii.gz: {os.strerror(number)}; ")
        assert remedy in told


def test_ctrl_c_ends_a_verb_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    def act(_: list[str]) -> int:
        raise KeyboardInterrupt

    assert verb("", None, Action(None, act))([]) == 130
    assert capsys.readouterr().err == "ended by Ctrl-C; to finish, run the same command again\n"


@pytest.mark.parametrize(("number", "place"), [(errno.EACCES, None), (errno.EBADF, "/hearts")])
def test_a_fault_of_the_code_keeps_its_traceback(
    number: int, place: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(OSError, match=os.strerror(number)):
        refusing(number, place)
