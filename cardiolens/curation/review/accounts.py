"""Accounts of reviewers: pseudonyms with salted hashes of generated passphrases; log-in sessions."""

import hashlib
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.private_file import check_private
from cardiolens.base.untrusted.bounded_files import MOST_JSON, parse_json, read_bytes
from cardiolens.config.base import Spec, describe

Role = Literal["reader", "adjudicator"]
Pseudonym = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
Hex = Annotated[str, Field(pattern="^[0-9a-f]{32,128}$")]

_LETTERS = "abcdefghjkmnpqrstuvwxyz23456789"  # without characters that look alike
_GROUPS, _GROUP = 4, 5  # groups, and letters per group: 99 bits
_COST = {"n": 1 << 15, "r": 8, "p": 1, "maxmem": 64 << 20}  # 32 MiB and about 0.1 s a try


class Account(Spec):
    """One person: role, salt and hash of the passphrase."""

    role: Role
    salt: Hex
    scrypt: Hex


class Accounts(Spec):
    """The file of accounts."""

    schema_: Literal["accounts-1"] = Field("accounts-1", alias="schema")
    people: Mapping[Pseudonym, Account] = {}


def read_accounts(path: Path) -> Accounts:
    """Read the accounts; InputError if the file is missing, damaged or open to other users."""
    try:
        check_private(path, f"readers={path}", "try passphrases without waiting")
        accounts = Accounts.model_validate(parse_json(read_bytes(path, MOST_JSON)))
    except FileNotFoundError:
        raise InputError(
            f"readers={path}: no such file; make accounts: python -m cardiolens.review add reader=... out=..."
        ) from None
    except OSError as error:
        raise InputError(f"readers={path}: cannot be read ({error.strerror}); correct it") from None
    except ValidationError as error:
        raise InputError(f"readers={path}: {describe(error)}; make the account again") from None
    except InputError:
        raise
    except ValueError as error:
        raise InputError(f"readers={path}: {error}; make the accounts again") from None
    return accounts


def add_account(path: Path, pseudonym: str, role: Role) -> str:
    """Write an account and return its new passphrase, which is not stored; replaces an earlier account."""
    passphrase = "-".join("".join(secrets.choice(_LETTERS) for _ in range(_GROUP)) for _ in range(_GROUPS))
    salt = secrets.token_bytes(16)
    account_fields = {"role": role, "salt": salt.hex(), "scrypt": _hash(passphrase, salt)}
    people = read_accounts(path).people if path.exists() else {}
    tree = {name: account.model_dump() for name, account in people.items()} | {pseudonym: account_fields}
    try:
        accounts = Accounts.model_validate({"schema": "accounts-1", "people": tree})
    except ValidationError:
        raise InputError(
            f"reader={pseudonym}: expected a pseudonym of at most 32 small letters, digits and '-'; not a "
            "person's name, because every output file contains it"
        ) from None
    text = json.dumps(accounts.model_dump(by_alias=True), indent=1) + "\n"
    disk.write_private(path, text.encode())
    return passphrase


def _hash(passphrase: str, salt: bytes) -> str:
    with _ONE_AT_A_TIME:  # concurrent tries would exhaust the memory
        return hashlib.scrypt(passphrase.encode(), salt=salt, **_COST).hex()


_ONE_AT_A_TIME = threading.Lock()
_FREE_TRIES = 5
_LONGEST_WAIT = 300.0  # s
_MOST_DOUBLINGS = 9  # 2^9 s is longer than the longest wait
_ROWS = 1 << 16  # of names that are counted, known or not
_IDLE = 12 * 3600.0  # s from log-in until a session ends


@dataclass(frozen=True, slots=True)
class Session:
    """A logged-in person, with the word that the page must send besides the cookie."""

    reader: str
    role: Role
    word: str
    began: float


def _wait_after(tries: int) -> float:
    """Seconds to wait after so many wrong tries in a row: none at first, then twice as long each time."""
    doublings = min(tries - _FREE_TRIES, _MOST_DOUBLINGS)
    return min(2.0**doublings, _LONGEST_WAIT) if doublings >= 0 else 0.0


@dataclass
class Door:
    """Log-in and sessions; repeated wrong passphrases lock a name, twice as long each time."""

    path: Path
    clock: Callable[[], float] = time.monotonic
    sessions: dict[str, Session] = field(default_factory=dict)
    wrong: dict[int, tuple[int, float]] = field(default_factory=dict)  # by row: tries, end of the wait
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def _row_of(self, pseudonym: str) -> int:
        """Row of a name among a bounded number of them; nobody can find a name of the same row."""
        digest = hashlib.blake2b(
            pseudonym.encode("utf-8", "replace"), key=self.secret, digest_size=8
        ).digest()
        return int.from_bytes(digest, "big") % _ROWS

    def log_in(self, pseudonym: str, passphrase: str) -> tuple[str, Session] | float:
        """Return a cookie and its session, or the seconds to wait before the next try (0.0: none).

        Unknown names take as much time and wait as long as known names, so that neither tells who is there.
        """
        people = read_accounts(self.path).people
        account = people.get(pseudonym)
        name = self._row_of(pseudonym)
        with self.lock:
            tries, free_at = self.wrong.get(name, (0, 0.0))
            if self.clock() < free_at:
                return free_at - self.clock()
            wait = _wait_after(tries + 1)
            self.wrong[name] = (
                tries + 1,
                self.clock() + wait,
            )  # before the hash, so that concurrent tries count
        digest = _hash(passphrase, bytes.fromhex(account.salt) if account else bytes(16))
        if account is None or not secrets.compare_digest(digest, account.scrypt):
            return wait
        with self.lock:
            self.wrong.pop(name, None)
            cookie = secrets.token_urlsafe(32)
            session = Session(pseudonym, account.role, secrets.token_urlsafe(32), self.clock())
            self.sessions[cookie] = session
        return cookie, session

    def session(self, cookie: str, word: str) -> Session | None:
        """Return the session that matches both cookie and word, or None."""
        with self.lock:
            session = self.sessions.get(cookie)
            if session is None or not secrets.compare_digest(session.word.encode(), word.encode()):
                return None
            if self.clock() - session.began > _IDLE:
                del self.sessions[cookie]
                return None
            return session

    def log_out(self, cookie: str) -> None:
        with self.lock:
            self.sessions.pop(cookie, None)
