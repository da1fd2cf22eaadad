"""Files of an export: nested folders, zip files (never unpacked to disk), names without an extension."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted import bounded_files, dicom_file, gzip_stream, zip_archive
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.base.untrusted.file_place import MOST_MEMBER, Place
from cardiolens.curation.ingest.reasons import Reason

MOST_BYTES = 4 << 30  # of one file
_FREE_BYTES = 64 << 20  # to which any member may unpack; no single image is larger
OF_DISCS = {"dicomdir", "autorun.inf"}  # the index and the autostart file of a disc
ARCHIVES = (".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
SOURCE_EXPECTED = "expected a folder, a file or a zip file of an export; correct source"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file of an export, with the reason if the import must not read the file."""

    place: Place
    size: int
    stamp: int  # modification time of the file, ns
    reason: Reason | None = None


def find(source: Path) -> Iterator[Candidate]:
    """Yield every file below a source, sorted by path; InputError if the source cannot be read."""
    try:
        mode = source.stat().st_mode
    except OSError as error:
        raise InputError(f"source={source}: cannot be read ({error.strerror}); {SOURCE_EXPECTED}") from None
    if stat.S_ISDIR(mode):
        for folder, folders, names in os.walk(source):
            folders.sort()
            for link in [name for name in folders if os.path.islink(os.path.join(folder, name))]:
                folders.remove(link)
                yield Candidate(Place(os.path.join(folder, link)), 0, 0, Reason.UNSAFE_PATH)
            for name in sorted(names):
                yield from _file(os.path.join(folder, name))
    elif stat.S_ISREG(mode):
        yield from _file(str(source))
    else:
        raise InputError(f"source={source}: is neither a folder nor a file; {SOURCE_EXPECTED}")


def _file(path: str) -> Iterator[Candidate]:
    place = Place(path)
    try:
        stat = os.lstat(path)
    except OSError:
        yield Candidate(place, 0, 0, Reason.UNREADABLE)
        return
    reason = _reason(place, stat)
    if reason is None and zip_archive.is_zip(path) and not _is_dicom(path):
        yield from _members(path, stat.st_mtime_ns)
        return
    if reason is None and path.lower().endswith((".zip", *ARCHIVES)) and not _is_dicom(path):
        reason = Reason.BROKEN_ARCHIVE if path.lower().endswith(".zip") else Reason.NESTED_ARCHIVE
    yield Candidate(place, stat.st_size, stat.st_mtime_ns, reason)


def _reason(place: Place, about: os.stat_result) -> Reason | None:
    if not stat.S_ISREG(about.st_mode):
        return Reason.UNSAFE_PATH
    if _is_housekeeping(place.path):
        return Reason.HOUSEKEEPING
    if about.st_size == 0:
        return Reason.EMPTY_FILE
    if about.st_size > MOST_BYTES:
        return None if zip_archive.is_zip(place.path) else Reason.TOO_LARGE
    return None if os.access(place.path, os.R_OK) else Reason.UNREADABLE


def _is_housekeeping(path: str) -> bool:
    parts = PurePosixPath(path.replace("\\", "/")).parts
    return any(map(is_housekeeping, parts)) or (bool(parts) and parts[-1].lower() in OF_DISCS)


def _is_dicom(path: str) -> bool:
    """Return whether a file has the DICOM prefix; an image may end in the bytes of a zip file."""
    return dicom_file.has_mark(bounded_files.read_start(Path(path), 132))


def _members(path: str, stamp: int) -> Iterator[Candidate]:
    try:
        entries = zip_archive.members(path)
    except zip_archive.BrokenArchiveError:
        yield Candidate(Place(path), 0, stamp, Reason.BROKEN_ARCHIVE)
        return
    names_in_zip: set[str] = set()
    for entry in entries:
        if not entry.is_dir():
            twice = entry.filename in names_in_zip
            reason = Reason.BROKEN_ARCHIVE if twice else _member_reason(entry)
            names_in_zip.add(entry.filename)
            yield Candidate(Place(path, entry.filename), entry.file_size, stamp, reason)


def _member_reason(entry: zip_archive.Member) -> Reason | None:
    name = PurePosixPath(entry.filename.replace("\\", "/"))
    is_link = stat.S_ISLNK(entry.external_attr >> 16)
    if is_link or name.is_absolute() or ".." in name.parts or ":" in (name.parts or ("",))[0]:
        return Reason.UNSAFE_PATH
    if _is_housekeeping(str(name)):
        return Reason.HOUSEKEEPING
    if entry.flag_bits & 1:
        return Reason.ENCRYPTED_ARCHIVE
    if entry.file_size == 0:
        return Reason.EMPTY_FILE
    swells = gzip_stream.swells(entry.compress_size, entry.file_size, _FREE_BYTES)
    if swells or entry.file_size > MOST_MEMBER:
        return Reason.TOO_LARGE
    return Reason.NESTED_ARCHIVE if str(name).lower().endswith((".zip", *ARCHIVES)) else None
