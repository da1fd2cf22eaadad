"""Verify a release: every file against the index, and patients against cohorts.

Nothing is believed of the folder: links, pipes and devices are named and not opened, values of any type are
taken as they come.
"""

import os
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.console import say
from cardiolens.base.digest import sha256_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_json
from cardiolens.config.released import INDEX, SCHEMA
from cardiolens.study.manifest import MANIFEST_NAME

MADE_BY_SWEEPS = ("outputs", "stores")  # in the folder that a sweep is started in


def verify(folder: Path) -> int:
    """Print the differences between a folder and its index; return 0 if there are none, else 1."""
    lines = list(differences(folder))
    for line in lines:
        say(line)
    say(f"{folder}: {len(lines)} differences" if lines else f"{folder}: as released")
    return 1 if lines else 0


def differences(folder: Path) -> Iterator[str]:
    """Yield a line per missing, changed or unknown file, and per patient in two cohorts."""
    index = _index(folder)
    seen: set[str] = set()
    cohorts: dict[str, set[str]] = defaultdict(set)
    for name, mode in sorted(_entries(folder)):
        if name == INDEX or name.partition("/")[0] in MADE_BY_SWEEPS:
            continue
        seen.add(name)
        if not stat.S_ISREG(mode):
            yield f"{name}: is a link, a pipe or a device; a release holds files alone"
        elif name not in index:
            yield f"{name}: is not of this release"
        else:
            yield from _file_differences(folder / name, name, index[name])
            if Path(name).name == MANIFEST_NAME:
                _add_cohorts(folder / name, cohorts)
    for name in sorted(index.keys() - seen):
        yield f"{name}: is missing"
    for patient, names in sorted(cohorts.items()):
        if len(names) > 1:
            yield f"patient {patient}: is in cohorts {', '.join(sorted(names))}"


def _entries(folder: Path) -> Iterator[tuple[str, int]]:
    """Yield name and mode of everything below a folder but folders; links are not followed."""
    for root, folders, names in os.walk(folder):
        for name in (*names, *(one for one in folders if Path(root, one).is_symlink())):
            path = Path(root, name)
            yield path.relative_to(folder).as_posix(), path.lstat().st_mode


def _file_differences(path: Path, name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    try:
        same = path.stat().st_size == entry.get("bytes") and sha256_of(path) == entry.get("sha256")
    except OSError as error:
        yield f"{name}: cannot be read ({error.strerror})"
        return
    if not same:
        yield f"{name}: is not what was released"


def _index(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of the index by file name; InputError if the folder has no index of this schema."""
    try:
        record: Any = read_json(folder / INDEX)
    except (OSError, ValueError) as error:
        raise InputError(f"verify={folder}: is no release ({INDEX}: {error})") from None
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise InputError(f"verify={folder}: is no release ({INDEX} lists no files)")
    if record.get("schema") != SCHEMA:
        raise InputError(f"verify={folder}: {INDEX} is not of schema {SCHEMA}; another version made it")
    return files


def _add_cohorts(path: Path, cohorts: dict[str, set[str]]) -> None:
    """Add the cohorts that a study's manifest names to those of its patient."""
    try:
        record: Any = read_json(path)
    except (OSError, ValueError):
        return  # it is not what was released, which is told
    if isinstance(record, dict):
        names = record.get("cohort")
        cohorts[str(record.get("patient_id"))] |= set(map(str, names if isinstance(names, list) else [names]))
