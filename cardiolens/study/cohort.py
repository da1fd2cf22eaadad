"""`cohort.json`: which studies of a store are current, in which part, and from which files they were made."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from cardiolens import tables
from cardiolens.config.base import Spec, describe
from cardiolens.digest import digest_of_tree
from cardiolens.errors import InputError
from cardiolens.study.manifest import Study

COHORT_NAME = "cohort.json"


class Stamp(Spec):
    """What tells that a file was touched: nobody can rewrite a file and keep its ctime and inode."""

    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class FileRecord(Spec):
    """A source file as it was when its study was prepared."""

    stamp: Stamp
    sha256: str


class StudyRecord(Spec):
    """A prepared study."""

    folder: str
    part: str
    manifest_sha256: str
    files: Mapping[str, FileRecord]


class Tried(Spec):
    """A study that failed, as it was before it was read, and the code that read it."""

    manifest_sha256: str
    stamps: Mapping[str, Stamp | None]  # None: no such file
    code: str


class Cohort(Spec):
    """The prepared studies of a store by study_id, and why others failed."""

    schema_: Annotated[Literal["cohort-1"], Field(alias="schema")] = "cohort-1"
    window_pct: tuple[float, float]
    studies: Mapping[str, StudyRecord]
    failed: Mapping[str, str]
    tried: Mapping[str, Tried] = {}  # of those that failed for more than their manifest


def read_cohort(store: Path) -> Cohort | None:
    """The cohort of a store; None where nothing was prepared."""
    path = store / COHORT_NAME
    try:
        return Cohort.model_validate_json(path.read_bytes())
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
    """Publish a cohort: from now on these studies and parts count."""
    tables.write_text(store / COHORT_NAME, cohort.model_dump_json(indent=1, by_alias=True) + "\n")


def stamp(path: Path) -> Stamp | None:
    """The stamp of a file; None where there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    return Stamp(
        size=found.st_size, mtime_ns=found.st_mtime_ns, ctime_ns=found.st_ctime_ns, inode=found.st_ino
    )


def untouched(study: Study, record: StudyRecord) -> bool:
    """Whether a study is as it was prepared, judged by its manifest's hash and its files' stamps alone."""
    same_manifest = record.manifest_sha256 == study.manifest_sha256
    return same_manifest and all(
        stamp(study.folder / path) == file.stamp for path, file in record.files.items()
    )


def tried(study: Study) -> Tried:
    """A study as it is now, to be kept should it fail: the same again would fail again."""
    stamps = {path: stamp(study.folder / path) for path in study.files()}
    return Tried(manifest_sha256=study.manifest_sha256, stamps=stamps, code=_code())


@cache
def _code() -> str:
    return digest_of_tree(Path(__file__).parent)
