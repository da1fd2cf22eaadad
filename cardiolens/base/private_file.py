"""Files that must stay with their owner: keys, tokens, accounts, the way back to patients."""

import os
import secrets
import stat
from pathlib import Path

from cardiolens.base import disk
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_text

KEY_BYTES = 32
_MOST_KEY = 4096  # bytes of its file

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


def check_private(
    path: Path, name: str, harm: str, otherwise: str = "", *, what: str = "it", owned: bool = False
) -> None:
    """Raise InputError if anybody but its owner has access to a file; OSError if there is none.

    `harm` completes "others may read it, and with it ...", where `what` stands for "it"; `otherwise` is added
    to the remedy. With `owned` the file must belong to the user as well: even root must not rely on a secret
    that another user made.
    """
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):  # no secret, and "chmod 600 /etc" is no remedy; its reader refuses it
        return
    foreign = owned and status.st_uid != os.getuid()
    if status.st_mode & _OTHERS or foreign:
        whose = f", owner {status.st_uid}" if foreign else ""
        raise InputError(
            f"{name}: others may read {what} (mode {stat.S_IMODE(status.st_mode):o}{whose}), "
            f"and with it {harm}; run chmod 600 {path}{otherwise}"
        )


def read_or_make_key(path: Path, name: str, harm: str, renewal: str) -> bytes:
    """Read a key of at least 32 bytes in hex; if the file is missing, write a new key for its owner alone.

    `harm` is what others could do with it, and `renewal` completes "or ..." and says how to get a new key.
    InputError for a key that others can read, for a file without a key, and where none can be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        disk.create(path, f"{secrets.token_hex(KEY_BYTES)}\n".encode())
    except FileExistsError:
        pass  # it was made before
    except OSError as error:
        raise InputError(
            f"{name}: cannot be written ({error.strerror}); name a file in a folder of yours"
        ) from None
    try:
        key = bytes.fromhex(read_text(path, _MOST_KEY).strip())
    except (OSError, ValueError):
        key = b""
    if len(key) < KEY_BYTES:
        raise InputError(f"{name}: holds no key; expected {2 * KEY_BYTES} or more hex digits; {renewal}")
    check_private(path, name, harm, f", or {renewal}")
    return key


def is_private_folder(folder: Path) -> bool:
    """Return whether a path is a folder, not a link, owned by the user and closed to everybody else."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & _OTHERS
