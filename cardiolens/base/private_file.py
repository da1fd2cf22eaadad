"""Files whose content must stay with their owner: keys, tokens, accounts, the way back to patients."""

import os
import stat
from pathlib import Path

from cardiolens.base.errors import InputError

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
    foreign = owned and status.st_uid != os.getuid()
    if status.st_mode & _OTHERS or foreign:
        whose = f", owner {status.st_uid}" if foreign else ""
        raise InputError(
            f"{name}: others may read {what} (mode {stat.S_IMODE(status.st_mode):o}{whose}), "
            f"and with it {harm}; run chmod 600 {path}{otherwise}"
        )


def is_private_folder(folder: Path) -> bool:
    """Return whether a path is a folder, not a link, owned by the user and closed to everybody else."""
    status = folder.lstat()
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & _OTHERS
