"""The file of reviews: on the disk before it is said, whole after a kill, and one writer."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.curation.review.queue import NAME, Ledger, Line, read_ledger

WRITER = """
import sys
from cardiolens.curation.review.queue import Ledger, Line, now
from pathlib import Path
ledger = Ledger(Path(sys.argv[1]))
for number in range(10**9):
    line = Line(id=f"key-{number:08d}", at=now(), event="decided", mode="verify", reader="anna",
                qa_id=f"S{number}", item="d" * 4000, verdict="accept")
    ledger.append(line)
    print(number, flush=True)
"""


def line_of(number: int, **more: object) -> Line:
    told = {"event": "decided", "mode": "verify", "reader": "anna", "qa_id": f"S{number}", "item": "d"}
    return Line.model_validate({"id": f"key-{number:08d}", "at": "now", "verdict": "accept", **told, **more})


def test_a_kill_costs_at_most_the_key_in_flight(tmp_path: Path) -> None:
    path = tmp_path / NAME
    command = [sys.executable, "-c", WRITER, path]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        for text in child.stdout:
            if int(text) >= 50:
                child.send_signal(signal.SIGKILL)
                break
        said = int((child.stdout.read().split() or [text])[-1])
    ledger = Ledger(path)
    kept = len(ledger.reviews.ids)
    assert said + 1 <= kept <= said + 2
    ledger.append(line_of(10**7))
    ledger.close()
    assert len(read_ledger(path).ids) == kept + 1


def test_a_disk_that_takes_nothing_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = Ledger(tmp_path / NAME)
    ledger.append(line_of(1))
    before = (tmp_path / NAME).read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            ledger.append(line_of(2))
    assert (tmp_path / NAME).read_bytes() == before
    assert len(ledger.reviews.ids) == 1
    ledger.append(line_of(2))
    assert len(read_ledger(tmp_path / NAME).ids) == 2
