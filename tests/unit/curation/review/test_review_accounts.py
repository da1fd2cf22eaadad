"""Accounts and sessions: who gets in, who waits, and what the file gives away."""

import json
import stat
from pathlib import Path

import pytest

from cardiolens.base.errors import InputError
from cardiolens.curation.review import accounts
from cardiolens.curation.review.accounts import Door, Session, add_account, read_accounts


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_COST", {"n": 2, "r": 1, "p": 1})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "readers.json"


def test_a_passphrase_stands_nowhere_and_lets_its_reader_alone_in(path: Path) -> None:
    anna, berta = add_account(path, "anna", "reader"), add_account(path, "berta", "adjudicator")
    assert anna not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    door = Door(path)
    cookie, session = door.log_in("anna", anna)
    assert (session.reader, session.role) == ("anna", "reader")
    assert door.session(cookie, session.word) == session
    assert isinstance(door.log_in("anna", berta), float)
    assert isinstance(door.log_in("berta", berta), tuple)


def test_cookie_and_word_are_both_needed_and_end(path: Path) -> None:
    passphrase = add_account(path, "anna", "reader")
    now = [0.0]
    door = Door(path, clock=lambda: now[0])
    cookie, session = door.log_in("anna", passphrase)
    other, second = door.log_in("anna", passphrase)
    assert door.session(cookie, second.word) is None
    assert door.session("", session.word) is None
    assert door.session(cookie, "") is None
    assert door.session(cookie, "é") is None
    door.log_out(cookie)
    assert door.session(cookie, session.word) is None
    assert door.session(other, second.word) == second
    now[0] = 13 * 3600
    assert door.session(other, second.word) is None


def test_who_is_wrong_too_often_waits_longer_each_time_and_then_not_at_all(path: Path) -> None:
    passphrase = add_account(path, "anna", "reader")
    now = [0.0]
    door = Door(path, clock=lambda: now[0])
    waits = []
    for _ in range(20):
        waits.append(door.log_in("anna", "wrong"))
        now[0] += waits[-1]
    assert waits[:4] == [0.0] * 4
    assert waits[4:] == [min(2.0**k, 300.0) for k in range(16)]
    now[0] -= 0.5
    assert isinstance(door.log_in("anna", passphrase), float), "the right one waits too, or it could be tried"
    now[0] += 0.5
    assert isinstance(door.log_in("anna", passphrase)[1], Session)
    assert door.log_in("anna", "wrong") == 0.0


def test_ten_thousand_wrong_tries_are_no_overflow(path: Path) -> None:
    passphrase = add_account(path, "anna", "reader")
    now = [0.0]
    door = Door(path, clock=lambda: now[0])
    door.wrong[door._row_of("anna")] = (10_000, 0.0)
    assert door.log_in("anna", "wrong") == 300.0
    now[0] += 300
    assert isinstance(door.log_in("anna", passphrase), tuple)


def test_a_name_that_nobody_has_waits_as_one_that_somebody_has(path: Path) -> None:
    add_account(path, "anna", "reader")
    doors = [Door(path, clock=lambda: 0.0) for _ in range(2)]
    known = [doors[0].log_in("anna", "x") for _ in range(9)]
    unknown = [doors[1].log_in("bert", "x") for _ in range(9)]
    assert known == unknown
    # nor does what others were told: another unknown name begins where another known one would
    assert doors[1].log_in("carl", "x") == 0.0


def test_a_name_that_nobody_has_costs_as_much_work(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_account(path, "anna", "reader")
    hashed: list[int] = []
    monkeypatch.setattr(accounts, "_hash", lambda passphrase, salt: hashed.append(len(salt)) or "")
    for name in ("anna", "bert"):
        door = Door(path, clock=lambda: 0.0)
        for _ in range(9):
            door.log_in(name, "x")
    assert hashed == [16] * 10, "five tries each, and none while a name waits"


def test_random_names_do_not_fill_the_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_account(path, "anna", "reader")
    monkeypatch.setattr(accounts, "_ROWS", 8)
    monkeypatch.setattr(accounts, "_hash", lambda *_: "")
    door = Door(path, clock=lambda: 0.0)
    for number in range(100):
        door.log_in(f"nobody-{number}", "x")
    assert len(door.wrong) <= 8


def test_an_account_that_is_made_again_has_another_passphrase(path: Path) -> None:
    old = add_account(path, "anna", "reader")
    new = add_account(path, "anna", "adjudicator")
    assert isinstance(Door(path).log_in("anna", old), float)
    assert Door(path).log_in("anna", new)[1].role == "adjudicator"


@pytest.mark.parametrize("name", ["", "Anna", "a b", "../x", "ä", "a" * 33, "-a"])
def test_a_pseudonym_is_plain(path: Path, name: str) -> None:
    with pytest.raises(InputError, match="expected a pseudonym"):
        add_account(path, name, "reader")


def test_accounts_that_others_can_read_or_that_are_none_are_refused(path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_accounts(path)
    add_account(path, "anna", "reader")
    path.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        read_accounts(path)
    path.chmod(0o600)
    for text in ("{", "[]", json.dumps({"schema": "accounts-1", "people": {"anna": {}}})):
        path.write_text(text)
        with pytest.raises(InputError, match="again"):
            read_accounts(path)
