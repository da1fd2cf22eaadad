"""Verify a release: every file against the index, and patients against cohorts.

Nothing is believed of the folder: links, pipes and devices are named and not opened, values of any type are
taken as they come.
"""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from cardiolens.base.console import say
from cardiolens.base.digest import sha256_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import MOST_BYTES, parse_json, read_bytes
from cardiolens.config.conf_names import INDEX, MOST_INDEX, SCHEMA
from cardiolens.study.manifest import MANIFEST_NAME

MADE_BY_SWEEPS = ("outputs", "stores")  # in the folder that a sweep is started in
_MOST_LINES = 1000  # that are printed
_MOST_MANIFEST = 16 << 20  # bytes


_PLACES = re.compile(  # of the files that a release may have
    r"README\.md|questions\.jsonl|studies/[^/]+/(study\.json|[^/]+\.nii(\.gz)?)|protocol/.+"
    r"|data/[a-z0-9-]+/\d{4}\.parquet"
)


def index_of(folder: Path, places: str = ".+") -> dict[str, dict[str, Any]]:
    """Return size and SHA-256 of the files of a folder at some places, by name; not of its `release.json`."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
        for name in names
        if name != INDEX and re.fullmatch(places, name)
    }


def verify(folder: Path, sha256: str | None = None) -> int:
    """Print up to a thousand differences between a folder and its index; return 0 if there are none.

    With the SHA-256 that those who made the release published, the index is compared first, and nothing else
    where it differs.
    """
    _index(folder)  # InputError for a folder that is no release
    digest = sha256_of(folder / INDEX)
    say(f"{INDEX}: sha256 {digest}")
    if sha256 is not None and digest != sha256:
        say(f"{INDEX}: is not the one of sha256={sha256}; do not use this release")
        return 1
    count = 0
    for count, line in enumerate(differences(folder), start=1):
        if count <= _MOST_LINES:
            say(line)
    if count > _MOST_LINES:
        say(f"and {count - _MOST_LINES} more")
    say(f"{folder}: {count} differences" if count else f"{folder}: as released")
    return 1 if count else 0


def differences(folder: Path) -> Iterator[str]:
    """Yield a line per missing, changed or unknown file, and per patient in two cohorts."""
    index = _index(folder)
    files: set[str] = set()
    cohorts: dict[str, set[str]] = defaultdict(set)
    for name, fault in sorted(_entries(folder)):
        if name == INDEX or name.partition("/")[0] in MADE_BY_SWEEPS:
            continue
        files.add(name)
        if fault:
            yield f"{name}: {fault}"
        elif name not in index:
            yield f"{name}: is not of this release"
        elif not _PLACES.fullmatch(name):
            yield f"{name}: is no file of a release, though its {INDEX} lists it; do not use it"
        else:
            yield from _file_differences(folder / name, name, index[name])
            if Path(name).name == MANIFEST_NAME:
                _add_cohorts(folder / name, cohorts)
    for name in sorted(index.keys() - files):
        yield f"{name}: is missing"
    for patient, names in sorted(cohorts.items()):
        if len(names) > 1:
            yield f"patient {patient}: is in cohorts {', '.join(sorted(names))}"


def _entries(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name of everything below a folder but folders, and what is wrong with it; follows no link."""
    waiting = [folder]  # a list in place of calls, which folders a thousand deep would exhaust
    while waiting:
        parent = waiting.pop()
        try:
            with os.scandir(parent) as entries:
                found = [(Path(entry.path), entry.stat(follow_symlinks=False).st_mode) for entry in entries]
        except OSError as error:
            yield parent.relative_to(folder).as_posix(), f"cannot be read ({error.strerror})"
            continue
        for path, mode in found:
            if stat.S_ISDIR(mode):
                waiting.append(path)
                continue
            is_file = stat.S_ISREG(mode)
            fault = "" if is_file else "is a link, a pipe or a device; a release has files alone"
            yield path.relative_to(folder).as_posix(), fault


def _file_differences(path: Path, name: str, entry: Mapping[str, Any]) -> Iterator[str]:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            yield f"{name}: has {size:,} bytes; a file of a release has at most {MOST_BYTES:,}"
        elif size != entry.get("bytes") or sha256_of(path) != entry.get("sha256"):
            yield f"{name}: is not what was released"
    except OSError as error:
        yield f"{name}: cannot be read ({error.strerror})"


def _index(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of the index by file name; InputError if the folder has no index of this schema."""
    no_release = f"verify={folder}: is no release ({INDEX}"
    try:
        record = parse_json(read_bytes(folder / INDEX, MOST_INDEX))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{no_release}: {reason}); give the folder that has a {INDEX}") from None
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise InputError(f"{no_release} lists no files); ask for the whole folder")
    if record.get("schema") != SCHEMA:
        raise InputError(f"verify={folder}: {INDEX} is not of schema {SCHEMA}; another version made it")
    return files


def _add_cohorts(path: Path, cohorts: dict[str, set[str]]) -> None:
    """Add the cohorts that a study's manifest names to those of its patient."""
    try:
        record: Any = parse_json(read_bytes(path, _MOST_MANIFEST))
    except (OSError, ValueError):
        return  # reading the study reports it
    if isinstance(record, dict):
        names = record.get("cohort")
        cohorts[str(record.get("patient_id"))] |= set(map(str, names if isinstance(names, list) else [names]))
