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


class StudyRecord(Spec):
    """A prepared study."""

    part: str
    state: str  # digest of the manifest and the files that it was prepared from
    subgroups: Mapping[str, str] = {}  # patient and scanner attributes from the manifest
    warnings: tuple[str, ...] = ()  # doubts about display and slice order that a person should settle
    found: tuple[str, ...] = ()  # facts that the manifest left open, derived from pixels, in words


class SamePixels(Spec):
    """Two studies and the number of images that stand in both."""

    studies: tuple[str, str]
    frames: int


class Cohort(Spec):
    """The prepared studies of a store by study_id, and the errors of those that failed."""

    schema_: Annotated[Literal["cohort-1"], Field(alias="schema")] = "cohort-1"
    version: str = stage_versions.PREPARED  # of the stage; frames of another version are prepared again
    window_pct: WindowPct
    windows: Mapping[str, WindowPct] = {}
    studies: Mapping[str, StudyRecord]
    failed: Mapping[str, str]
    tried: Mapping[str, str] = {}  # states of failed studies whose manifest could be read
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


def current_cohort(store: Path, windows: Windows, anatomy: Anatomy | None = None) -> Cohort:
    """Read the cohort of a store; empty if there is none, or if windows, version or anatomy differ."""
    cohort, version = read_cohort(store), stage_versions.PREPARED
    under = None if anatomy == heart() else anatomy
    if cohort is not None and (cohort.display, cohort.version, cohort.anatomy) == (windows, version, under):
        return cohort
    return Cohort(
        version=version,
        window_pct=windows.pct,
        windows=windows.by_name,
        studies={},
        failed={},
        anatomy=under,
    )


def write_cohort(store: Path, cohort: Cohort) -> None:
    """Publish a cohort; readers then use only its studies and parts."""
    disk.write_text(store / COHORT_NAME, cohort.model_dump_json(indent=1, by_alias=True) + "\n")


def stamp(path: Path) -> tuple[int, ...] | None:
    """Return attributes of a file: no rewrite keeps both ctime and inode. None if there is no file."""
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def state_of(study: Study) -> str:
    """Return the digest of a study's manifest and of the stamps of its files; no file is read."""
    return digest_of([study.manifest_sha256, [[path, stamp(study.folder / path)] for path in study.files()]])
