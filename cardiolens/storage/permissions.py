"""File permissions: the user alone, or with `group_shared=true` the user's group as well."""

import grp
import logging
import os
import stat
from collections.abc import Sequence
from pathlib import Path

from cardiolens.base.errors import InputError, RunError
from cardiolens.config.sweep import SweepSpec
from cardiolens.storage.places import run_of

PRIVATE, SHARED = 0o077, 0o007  # umasks
_SHARED_FOLDER = stat.S_ISGID | stat.S_IRWXU | stat.S_IRWXG  # setgid: new files inherit its group

log = logging.getLogger(__name__)


def be_private() -> None:
    """Make every new file of this process and its children the user's own."""
    os.umask(PRIVATE)


def set_privacy(spec: SweepSpec) -> str | None:
    """Share store and run with the group if the sweep says so, else keep them private; a line to print.

    InputError where the folders on disk were made the other way: half a store would be closed to the group.
    """
    folders = [spec.store, run_of(spec).root]
    if spec.group_shared:
        return _share(folders)
    for folder in folders:
        _keep_private(folder)
    return None


def follow(folder: Path) -> None:
    """Set the umask to match a folder: shared with the group, or private."""
    os.umask(SHARED if is_shared(folder) else PRIVATE)


def is_shared(folder: Path) -> bool:
    """Return whether a folder was made with `group_shared=true`."""
    return folder.is_dir() and folder.stat().st_mode & _SHARED_FOLDER == _SHARED_FOLDER


def _share(folders: Sequence[Path]) -> str:
    os.umask(SHARED)
    for folder in folders:
        if is_shared(folder):
            continue
        if folder.exists():
            raise InputError(
                f"group_shared=true: {folder} was made for you alone; choose another, or open it once: "
                f"chmod -R g+rwX,o= {folder} && find {folder} -type d -exec chmod g+s {{}} +"
            )
        try:
            folder.mkdir(parents=True)
            folder.chmod(_SHARED_FOLDER)
        except OSError as error:
            raise RunError(f"{folder}: cannot be made ({error.strerror}); check permissions") from None
    names = ", ".join(f"{folder} (group {_group(folder)})" for folder in folders)
    return f"group_shared=true: everybody in its group may read and change {names}"


def _keep_private(folder: Path) -> None:
    if is_shared(folder):
        raise InputError(
            f"{folder}: is shared with the group {_group(folder)}, which could not read what this run "
            "writes; add group_shared=true, or choose another folder"
        )
    if folder.is_dir() and folder.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        log.warning("%s: others on this machine can read it; run chmod -R go= %s", folder, folder)


def _group(folder: Path) -> str:
    number = folder.stat().st_gid
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)
