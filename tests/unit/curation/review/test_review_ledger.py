"""Files of a review: of decisions, on the disk before it is said, whole after a kill; of private links."""

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.review.people import LINKS, read_people
from cardiolens.curation.review.queue import NAME, Ledger, Line, read_ledger

WRITER = """
import sys
from cardiolens.base.errors import InputError
from cardiolens.curation.review.people import LINKS, read_people
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


def test_everyone_has_a_link_that_stays_and_more_may_join(tmp_path):
    first = read_people(tmp_path, ("anna", "berta"), None)
    later = read_people(tmp_path, ("carla",), "third")
    assert first.by_token.items() <= later.by_token.items()
    assert first.key == later.key
    assert read_people(tmp_path, (), None) == later
    assert {person.name: person.role for person in later.by_token.values()} == {
        **dict.fromkeys(("anna", "berta", "carla"), "reader"),
        "third": "adjudicator",
    }
    assert len(set(later.by_token)) == 4
    assert stat.S_IMODE((tmp_path / LINKS).stat().st_mode) == 0o600


def test_a_token_is_of_one_person_and_no_other_is_anybodys(tmp_path):
    people = read_people(tmp_path, ("anna",), None)
    (token,) = people.by_token
    assert people.owner(token).name == "anna"
    for other in ("", token[:-1], f"{token}x", token.swapcase(), "\ud800"):
        assert people.owner(other) is None


@pytest.mark.parametrize(
    ("readers", "third", "message"),
    [
        ((), None, "readers= is not given"),
        (("Anna Schmidt",), None, "expected pseudonyms"),
        (("anna",), "anna", "name each person once"),
        (("third",), None, "is adjudicator of this review already"),
    ],
)
def test_people_who_cannot_be_named_so_are_refused(tmp_path, readers, third, message):
    if "already" in message:
        read_people(tmp_path, ("anna",), "third")
    with pytest.raises(InputError, match=message):
        read_people(tmp_path, readers, third)


def test_links_that_others_can_read_or_that_are_damaged_are_refused(tmp_path):
    read_people(tmp_path, ("anna",), None)
    (tmp_path / LINKS).chmod(0o644)
    with pytest.raises(InputError, match="others may read it"):
        read_people(tmp_path, (), None)
    for content in ("", "[]", '{"schema": "links-1"}', "[" * 9000):
        (tmp_path / LINKS).write_text(content)
        (tmp_path / LINKS).chmod(0o600)
        with pytest.raises(InputError, match="pass on the new links"):
            read_people(tmp_path, (), None)
