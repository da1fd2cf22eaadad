"""The names that a command line may use: files of conf/ by group, and releases by their folder.

Only a release's index is read, and of that only names. A release is made by strangers, so it cannot name
models, prompts, engines or options: whatever lies in a `conf/` of its own is not looked at.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.paths import shipped
from cardiolens.base.untrusted.bounded_files import is_housekeeping, parse_json, read_bytes
from cardiolens.config.dataset import ReleaseSpec

GROUPS = ("model", "selector", "prompt", "control", "dataset", "cluster", "tracker", "experiment")
ONE_OF = ("dataset", "cluster", "tracker")  # groups with exactly one entry in a sweep


def packaged_conf() -> Path:
    """Return the shipped `conf/` folder."""
    return shipped("conf")


def conf_folders() -> list[Path]:
    """Return the folders searched for names: `conf/` in the working directory, then the packaged one.

    The `conf/` of a release is not the user's.
    """
    own_conf = Path.cwd() / "conf"
    packaged = packaged_conf()
    if (Path.cwd() / INDEX).is_file():  # of a release, whose makers are strangers
        return [packaged]
    return [packaged] if not own_conf.is_dir() or own_conf.samefile(packaged) else [own_conf, packaged]


def legal_names(group: str) -> list[str]:
    """Return the sorted names of a configuration group, including the user's own."""
    return sorted({path.stem for folder in conf_folders() for path in conf_files(folder / group)})


def conf_files(folder: Path) -> Iterator[Path]:
    """Yield the configuration files of a folder."""
    return (path for path in folder.glob("*.yaml") if not is_housekeeping(path.name))


INDEX = "release.json"
SCHEMA = "release-1"
MOST_INDEX = 24 << 20  # bytes: the files of twenty thousand studies; more could take a GiB when parsed
_QUESTIONS = "questions.jsonl"
_PROTOCOL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def released_options(folder: Path) -> dict[str, Any]:
    """Return the options of the data set that a release is; InputError if the folder holds none."""
    release, facts = read_release(folder)
    own_protocol, protocol = folder / "protocol", str(facts.get("protocol"))
    if not own_protocol.is_dir() and not _PROTOCOL.fullmatch(protocol):
        raise InputError(
            f"dataset={folder}: its {INDEX} names a protocol that is no name of letters, digits, ., - and _; "
            "it is no release of cardiolens"
        )
    for path in (folder / "studies", folder / _QUESTIONS, own_protocol, *own_protocol.glob("*")):
        if path.is_symlink():
            raise InputError(
                f"dataset={folder}: {path.relative_to(folder)} is a link, and a release has files "
                "alone; ask for it anew"
            )
    return {
        "name": release.name,
        "studies": str(folder.absolute() / "studies"),
        "questions": str(folder.absolute() / _QUESTIONS),
        "protocol": str(own_protocol.absolute()) if own_protocol.is_dir() else protocol,
        "allow": ["unverified"] if facts.get("unverified_allowed") is True else [],
        "release": release.model_dump(),
    }


def read_release(folder: Path) -> tuple[ReleaseSpec, dict[str, Any]]:
    """Return which release a folder is, with its index; InputError if it holds none of this schema."""
    try:
        stored = read_bytes(folder / INDEX, MOST_INDEX)
        facts = parse_json(stored)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(
            f"dataset={folder}: holds no release ({INDEX}: {reason}); give the folder of one, or a name of "
            "conf/dataset"
        ) from None
    if not isinstance(facts, dict) or facts.get("schema") != SCHEMA:
        raise InputError(f"dataset={folder}: its {INDEX} is not of schema {SCHEMA}; another version made it")
    files = facts.get("files")
    entry = files.get(_QUESTIONS) if isinstance(files, dict) else None
    identity = {name: facts.get(name) for name in ("name", "number")} | {
        "sha256": sha256(stored).hexdigest(),
        "questions_sha256": entry.get("sha256") if isinstance(entry, dict) else None,
    }
    try:
        return ReleaseSpec.model_validate(identity), facts
    except ValidationError as error:
        raise InputError(
            f"dataset={folder}: its {INDEX} has no legal {error.errors()[0]['loc'][0]}; it is no release of "
            "cardiolens"
        ) from None
