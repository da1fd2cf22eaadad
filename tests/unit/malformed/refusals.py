"""What every malformed input must come to: a named error alone, the right exit code, nothing half-written."""

import hashlib
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError, RunError
from cardiolens.commands.command import Action, print_error
from cardiolens.commands.command import verb as verb_of
from cardiolens.config.sweep import SweepSpec

LIBRARIES = r"Traceback|site-packages|pydantic|errors\.pydantic|object at 0x"

Snapshot = dict[str, str]


def snapshot(root: Path) -> Snapshot:
    """Every file under a folder with the hash of its bytes."""
    files = (path for path in root.rglob("*") if path.is_file())
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


_MAY_APPEAR = r"outputs/[^/]+/sweep\.log|store/(questions|evidence)/part-[^/]+\.parquet|.*digests\.json"


def verb(act: Callable[[], object]) -> Callable[[], int]:
    """As the verbs end: what was refused is told, and nothing else is caught."""

    def run() -> int:
        try:
            act()
        except (InputError, RunError) as error:
            return print_error(error)
        return 0

    return run


def run_verb(act: Callable[[SweepSpec], int], words: Sequence[str]) -> int:
    """Run a verb on the sweep that words describe, and return the exit code."""
    return verb_of("", None, Action(SweepSpec, act))(words)


def refused(
    run: Callable[[], int],
    said: str,
    printed: pytest.CaptureFixture[str],
    root: Path,
    *,
    code: int = 2,
    may_appear: str = _MAY_APPEAR,
) -> str:
    """Run a verb that must refuse: its message, after every check that all malformed inputs share.

    `may_appear` names files that are whole whenever they are there: the log, questions, digests of old files.
    """
    before = snapshot(root)
    printed.readouterr()
    assert run() == code
    message = printed.readouterr().err
    assert message.startswith("error: ")
    assert message.count("\n") == 1, "one line"
    assert re.search(said, message), message
    assert not re.search(LIBRARIES, message), message
    after = snapshot(root)
    assert {name: after.get(name) for name in before} == before, "what was there has changed"
    assert [name for name in after.keys() - before.keys() if not re.fullmatch(may_appear, name)] == []
    return message
