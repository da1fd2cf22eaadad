"""`cohort.json`: the current studies of a store, with their parts and source files."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base import disk, stage_versions
from cardiolens.base.digest import digest_of
from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import read_bytes
from cardiolens.config.base import Spec, describe
from cardiolens.config.dataset import WindowPct, Windows
from cardiolens.study.anatomy import Anatomy, heart
from cardiolens.study.manifest import Study

COHORT_NAME = "cohort.json"
RULES = 2  # version of the display rules: windows without padding, times of the heart (protocol 16.16)


class Stamp(Spec):
    """File attributes that reveal a change: no rewrite keeps both ctime and inode."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class FileRecord(Spec):
    """The state of a source file when its study was prepared."""

    stamp: Stamp
    sha256: str


class StudyRecord(Spec):
    """A prepared study, with its source files by path."""

    part: str
    manifest_sha256: str
    files: Mapping[str, FileRecord]
    subgroups: Mapping[str, str] = {}  # patient and scanner attributes from the manifest
    warnings: tuple[str, ...] = ()  # doubts about display and slice order that a person should settle
    found: tuple[str, ...] = ()  # facts that the manifest left open, derived from pixels, in words


class FailedAttempt(Spec):
    """State of a study before a failed attempt, and the digest of the code that read it."""

    manifest_sha256: str
    stamps: Mapping[str, Stamp | None]  # by path; None: no such file
    code: str


class SamePixels(Spec):
    """Two studies and the number of images that stand in both."""

    studies: tuple[str, str]
    frames: int


class Cohort(Spec):
    """The prepared studies of a store by study_id, and the errors of those that failed."""

    schema_: Annotated[Literal["cohort-1"], Field(alias="schema")] = "cohort-1"
    rules: int = RULES  # display rules; frames of earlier rules are prepared again
    window_pct: WindowPct
    windows: Mapping[str, WindowPct] = {}
    studies: Mapping[str, StudyRecord]
    failed: Mapping[str, str]
    tried: Mapping[str, FailedAttempt] = {}  # failed studies whose manifest could be read
    same_pixels: tuple[SamePixels, ...] | None = None  # None: not looked for yet
    anatomy: Anatomy | None = None  # under which the studies were read; None: the heart's

    @property
    def organ(self) -> Anatomy:
        """The anatomy under which the studies were read."""
        return self.anatomy or heart()

    @property
    def display(self) -> Windows:
        """The windows of the cohort's frames."""
        return Windows(pct=self.window_pct, by_name=self.windows)


def read_cohort(store: Path) -> Cohort | None:
    """Read the cohort of a store; None if no study was prepared, InputError if the file is unreadable."""
    path = store / COHORT_NAME
    try:
        return Cohort.model_validate_json(read_bytes(path))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror}); check the path and permissions"
        ) from None
    except ValidationError as error:
        raise InputError(
            f"{path}: is not a cohort-1 file ({describe(error)}); delete it and prepare again"
        ) from None


def write_cohort(store: Path, cohort: Cohort) -> None:
    """Publish a cohort; readers then use only its studies and parts."""
    disk.write_text(store / COHORT_NAME, cohort.model_dump_json(indent=1, by_alias=True) + "\n")


def stamp(path: Path) -> Stamp | None:
    """Return the stamp of a file; None if the file does not exist."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return Stamp(size=stat.st_size, mtime_ns=stat.st_mtime_ns, ctime_ns=stat.st_ctime_ns, inode=stat.st_ino)


def untouched(study: Study, record: StudyRecord) -> bool:
    """Return whether a study is unchanged since it was prepared.

    Compares the manifest's hash and the files' stamps; no file is read.
    """
    same_manifest = record.manifest_sha256 == study.manifest_sha256
    return same_manifest and all(
        stamp(study.folder / path) == file.stamp for path, file in record.files.items()
    )


def failed_attempt(study: Study) -> FailedAttempt:
    """Return the current state of a study, to store if it fails: the same state would fail again."""
    stamps = {path: stamp(study.folder / path) for path in study.files()}
    code = digest_of([stage_versions.PREPARED, study.anatomy.digest])
    return FailedAttempt(manifest_sha256=study.manifest_sha256, stamps=stamps, code=code)
