"""`cohort.json`: the current studies of a store, the part of each, and the files it was prepared from."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens.base.errors import InputError
from cardiolens.base.provenance import code_of
from cardiolens.base.untrusted.files import read_bytes
from cardiolens.config.base import Spec, describe
from cardiolens.config.dataset import WindowPct, Windows
from cardiolens.storage import tables
from cardiolens.study.manifest import Study

COHORT_NAME = "cohort.json"
RULES = 2  # of display: windows without padding, times of the heart (protocol 16.16)


class Stamp(Spec):
    """Facts by which a changed file is recognised: no rewrite keeps both ctime and inode."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class FileRecord(Spec):
    """A source file as it was when its study was prepared."""

    stamp: Stamp
    sha256: str


class StudyRecord(Spec):
    """A prepared study, with the files that it was prepared from, by path."""

    # Earlier versions wrote the folder's name, which may name a patient; it is read and never written.
    folder: Annotated[str, Field(exclude=True)] = ""
    part: str
    manifest_sha256: str
    files: Mapping[str, FileRecord]
    subgroups: Mapping[str, str] = {}  # what its manifest says of patient and scanner, by attribute
    warnings: tuple[str, ...] = ()  # doubts about its display and order that a person should settle
    found: tuple[str, ...] = ()  # what its manifest left open, and was found in its pixels


class FailedAttempt(Spec):
    """State of a study before an attempt that failed, and the digest of the code that read it."""

    manifest_sha256: str
    stamps: Mapping[str, Stamp | None]  # by path; None: no such file
    code: str


class Cohort(Spec):
    """The prepared studies of a store by study_id, and the errors of those that failed."""

    schema_: Annotated[Literal["cohort-1"], Field(alias="schema")] = "cohort-1"
    rules: int = RULES  # of display; frames of earlier rules are made anew
    window_pct: WindowPct
    windows: Mapping[str, WindowPct] = {}
    studies: Mapping[str, StudyRecord]
    failed: Mapping[str, str]
    tried: Mapping[str, FailedAttempt] = {}  # failed studies whose manifest could be read

    @property
    def display(self) -> Windows:
        """The windows of its frames."""
        return Windows(pct=self.window_pct, by_name=self.windows)


def read_cohort(store: Path) -> Cohort | None:
    """Read the cohort of a store; None where no study was prepared, InputError for an unreadable file."""
    path = store / COHORT_NAME
    try:
        cohort = Cohort.model_validate_json(read_bytes(path))
        return cohort if "rules" in cohort.model_fields_set else cohort.model_copy(update={"rules": 1})
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
    """Publish a cohort: from now on only its studies and parts are read."""
    tables.write_text(store / COHORT_NAME, cohort.model_dump_json(indent=1, by_alias=True) + "\n")


def stamp(path: Path) -> Stamp | None:
    """Stamp of a file; None where there is no such file."""
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
    """State of a study now. It is stored if the study fails: the same state would fail again."""
    stamps = {path: stamp(study.folder / path) for path in study.files()}
    code = code_of("cardiolens.study.group")
    return FailedAttempt(manifest_sha256=study.manifest_sha256, stamps=stamps, code=code)
