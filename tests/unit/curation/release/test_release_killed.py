"""A release that fails or is killed at any write: the same command again makes the same bytes."""

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest

from cardiolens.base import disk
from cardiolens.base.errors import RunError
from cardiolens.curation.release.make import release
from tests.unit.curation.release.test_release import SECRET, line, write_lines, write_study

ROOT = Path(__file__).resolve().parents[4]
STEP = 9  # writes from one fault to the next; the first is drawn
# A process of its own, whose random numbers are those of the fixture, killed at a write.
KILLED = """
import os, signal, sys, uuid, secrets
from cardiolens.base import disk
from cardiolens.curation.release.make import release
secrets.token_hex = lambda n: "0" * 2 * n
uuid.uuid4 = lambda: uuid.UUID(int=7)
left = [int(sys.argv[1])]
def hook(kind, path):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
disk.hooks.append(hook)
release(sys.argv[2:])
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Two studies of two patients; what is drawn at random is the same in each release."""
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    monkeypatch.setattr("uuid.uuid4", lambda: UUID(int=7))
    for number in (1, 2):
        write_study(tmp_path, number, f"{SECRET}-{number}")
    write_lines(tmp_path, [line(1), line(2, "B")])
    given = {"questions": "q.jsonl", "studies": "studies", "links": "sent/links.jsonl"}
    (tmp_path / "sent").mkdir()
    named = [f"{name}={tmp_path / path}" for name, path in given.items()]
    yield [*named, f"out={tmp_path}/sent/out", "name=ours", "licence=internal"]
    disk.hooks.clear()


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def whole(words: list[str], tmp_path: Path) -> tuple[dict[str, bytes], int]:
    """Content of an undisturbed release, which is removed again, and the number of its writes."""
    count = 0

    def hook(kind: str, path: Path) -> None:
        nonlocal count
        count += 1

    disk.hooks.append(hook)
    release(words)
    disk.hooks.clear()
    made = content(tmp_path / "sent")
    disk.remove_tree(tmp_path / "sent" / "out")
    (tmp_path / "sent" / "links.jsonl").unlink()
    return made, count


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_fault_at_any_write_leaves_no_release_and_nothing_in_the_way(
    words: list[str], tmp_path: Path, error: BaseException
) -> None:
    made, count = whole(words, tmp_path)
    assert count > 20
    out = tmp_path / "sent" / "out"
    for number in range(random.randint(1, STEP), count + 1, STEP):
        left = number

        def hook(kind: str, path: Path) -> None:
            nonlocal left
            left -= 1
            if not left:
                raise error

        disk.hooks[:] = [hook]
        with pytest.raises((RunError, KeyboardInterrupt)):
            release(words)
        disk.hooks.clear()
        if out.exists():  # the fault came after the rename
            assert {name: made[name] for name in made if name.startswith("out/")} == {
                f"out/{name}": stored for name, stored in content(out).items()
            }
            disk.remove_tree(out)
        release(words)
        assert content(tmp_path / "sent") == made
        disk.remove_tree(out)


@pytest.mark.full
@pytest.mark.parametrize("part", [0.2, 0.6, 0.9])
def test_after_a_kill_the_same_command_makes_the_same_bytes(
    words: list[str], tmp_path: Path, part: float
) -> None:
    made, count = whole(words, tmp_path)
    command = [sys.executable, "-c", KILLED, str(round(part * count)), *words]
    done = subprocess.run(command, cwd=ROOT, env=dict(os.environ), capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "sent" / "out").exists()
    assert release(words) == 0
    assert content(tmp_path / "sent") == made
