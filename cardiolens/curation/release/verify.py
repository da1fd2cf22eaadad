"""Verify a release or an imported public set: every file against the index, and patients against cohorts.

Nothing is believed of the folder: links, pipes and devices are named and not opened, values of any type are
taken as they come.
"""

import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Kind:
    """What a folder with an index is: the schema, the files that it may have, and how they came there."""

    name: str
    index: str
    schema: str
    places: re.Pattern[str]
    verb: str
    is_closed: bool  # whether no other file may lie in the folder


RELEASE = Kind(
    "release",
    INDEX,
    SCHEMA,
    re.compile(
        r"README\.md|questions\.jsonl|studies/[^/]+/(study\.json|[^/]+\.nii(\.gz)?)|protocol/.+"
        r"|data/[a-z0-9-]+/\d{4}\.parquet"
    ),
    "released",
    is_closed=True,
)
PUBLIC_SET = Kind(
    "imported set",
    "set.json",
    "set-1",
    re.compile(r"studies/[^/]+/.+|questions/questions\.jsonl"),
    "imported",
    is_closed=False,
)


def index_of(folder: Path, kind: Kind = RELEASE) -> dict[str, dict[str, Any]]:
    """Return size and SHA-256 of the files of a folder that its index lists, by name."""
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {
        name: {"bytes": (folder / name).stat().st_size, "sha256": sha256_of(folder / name)}
        for name in names
        if name != kind.index and (kind.is_closed or kind.places.fullmatch(name))
    }


def verify(folder: Path, sha256: str | None = None) -> int:
    """Print up to a thousand differences between a folder and its index; return 0 if there are none.

    With the SHA-256 that those who made the release published, the index is compared first, and nothing else
    where it differs.
    """
    is_set = sha256 is None and (folder / PUBLIC_SET.index).is_file()
    kind = PUBLIC_SET if is_set else RELEASE
    _index(folder, kind)  # a folder that is no release is told as that
    digest = sha256_of(folder / kind.index)
    say(f"{kind.index}: sha256 {digest}")
    if sha256 is not None and digest != sha256:
        say(f"{kind.index}: is not the one of sha256={sha256}; do not use this release")
        return 1
    count = 0
    for count, line in enumerate(differences(folder, kind), start=1):
        if count <= _MOST_LINES:
            say(line)
    if count > _MOST_LINES:
        say(f"and {count - _MOST_LINES} more")
    say(f"{folder}: {count} differences" if count else f"{folder}: as {kind.verb}")
    return 1 if count else 0


def differences(folder: Path, kind: Kind = RELEASE) -> Iterator[str]:
    """Yield a line per missing, changed or unknown file, and per patient in two cohorts."""
    index = _index(folder, kind)
    files: set[str] = set()
    cohorts: dict[str, set[str]] = defaultdict(set)
    for name, fault in sorted(_entries(folder)):
        is_legal = kind.places.fullmatch(name) is not None
        if name == kind.index or name.partition("/")[0] in MADE_BY_SWEEPS:
            continue
        if not (kind.is_closed or is_legal or name in index):
            continue
        files.add(name)
        if fault:
            yield f"{name}: {fault}"
        elif name not in index:
            yield f"{name}: is not of this {kind.name}"
        elif not is_legal:
            yield f"{name}: is no file of a {kind.name}, though its {kind.index} lists it; do not use it"
        else:
            yield from _file_differences(folder / name, name, index[name], kind)
            if Path(name).name == MANIFEST_NAME:
                _add_cohorts(folder / name, cohorts)
    for name in sorted(index.keys() - files):
        yield f"{name}: is missing"
    for patient, names in sorted(cohorts.items()):
        if len(names) > 1 and kind.is_closed:
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


def _file_differences(path: Path, name: str, entry: Mapping[str, Any], kind: Kind) -> Iterator[str]:
    try:
        size = path.stat().st_size
        if size > MOST_BYTES:
            yield f"{name}: has {size:,} bytes; a file of a {kind.name} has at most {MOST_BYTES:,}"
        elif size != entry.get("bytes") or sha256_of(path) != entry.get("sha256"):
            yield f"{name}: is not what was {kind.verb}"
    except OSError as error:
        yield f"{name}: cannot be read ({error.strerror})"


def _index(folder: Path, kind: Kind) -> Mapping[str, Mapping[str, Any]]:
    """Return the entries of the index by file name; InputError if the folder has no index of this schema."""
    no_release = f"verify={folder}: is no {kind.name} ({kind.index}"
    try:
        record = parse_json(read_bytes(folder / kind.index, MOST_INDEX))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{no_release}: {reason}); give the folder that has a {kind.index}") from None
    files = record.get("files") if isinstance(record, dict) else None
    if not isinstance(files, dict) or not all(isinstance(entry, dict) for entry in files.values()):
        raise InputError(f"{no_release} lists no files); ask for the whole folder")
    if record.get("schema") != kind.schema:
        raise InputError(
            f"verify={folder}: {kind.index} is not of schema {kind.schema}; another version made it"
        )
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
