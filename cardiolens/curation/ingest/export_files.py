"""Files of an export, with or without extensions: which are read, and what becomes of each."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import is_housekeeping
from cardiolens.curation.ingest.conventions import Convention
from cardiolens.curation.ingest.frame_records import Image, RejectedError, broken
from cardiolens.curation.ingest.ids import Pseudonyms
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.runtime.processes import spread

Rejects = list[dict[str, Any]]
_Result = TypeVar("_Result")
_MOST_BYTES = 4 << 30  # of one file
_OF_DISCS = {"dicomdir", "autorun.inf"}  # the index and the autostart file of a disc
_ARCHIVES = (".zip", ".7z", ".rar", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")
_SOURCE_EXPECTED = "expected a folder or a file of an export; correct source"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A file of an export, with the reason if the import must not read the file."""

    place: Path
    size: int = 0
    stamp: int = 0  # modification time of the file, ns
    reason: Reason | None = None
    detail: str = ""


def find(source: Path) -> Iterator[Candidate]:
    """Yield every file below a source, sorted by path; InputError if the source cannot be read."""
    try:
        mode = source.stat().st_mode
    except OSError as error:
        raise InputError(f"source={source}: cannot be read ({error.strerror}); {_SOURCE_EXPECTED}") from None
    if stat.S_ISREG(mode):
        yield _candidate(source)
        return
    if not stat.S_ISDIR(mode):
        raise InputError(f"source={source}: is neither a folder nor a file; {_SOURCE_EXPECTED}")
    closed: list[OSError] = []
    for folder, folders, names in os.walk(source, onerror=closed.append):
        folders.sort()
        links = [name for name in folders if os.path.islink(os.path.join(folder, name))]
        folders[:] = [name for name in folders if name not in links]
        yield from (_candidate(Path(folder, name)) for name in (*links, *sorted(names)))
    for failed in closed:
        detail = f"a folder that cannot be read: {failed.strerror}"
        yield Candidate(Path(failed.filename), reason=Reason.UNREADABLE, detail=detail)


def _candidate(path: Path) -> Candidate:
    try:
        status = path.lstat()
    except OSError as error:
        return Candidate(path, reason=Reason.UNREADABLE, detail=error.strerror or "")
    reason, detail = None, ""
    if not stat.S_ISREG(status.st_mode):
        reason, detail = Reason.UNREADABLE, "a link or no file"
    elif any(map(is_housekeeping, path.parts)) or path.name.lower() in _OF_DISCS:
        reason = Reason.HOUSEKEEPING
    elif not 0 < status.st_size <= _MOST_BYTES:
        reason, detail = Reason.UNREADABLE, "too large" if status.st_size else "empty"
    elif not os.access(path, os.R_OK):
        reason, detail = Reason.UNREADABLE, "no permission"
    elif path.name.lower().endswith(_ARCHIVES):
        reason = Reason.PACKED
    return Candidate(path, status.st_size, status.st_mtime_ns, reason, detail)


@dataclass
class Export:
    """Frames, files and rejects of a source."""

    source: Path
    names: Pseudonyms
    candidates: dict[str, Candidate] = field(default_factory=dict)  # by path below the source
    studies: dict[str, list[Image]] = field(default_factory=dict)
    files: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)  # by study: name → size, stamp
    rejects: Rejects = field(default_factory=list)
    layout: Convention | None = None  # that says what each file is

    def reject(self, name: str, reason: Reason, detail: str = "", frame: int = 0) -> None:
        """Add a line for a file, or a frame of it, that is left out."""
        self.rejects.append(reject(self.names.file(name), reason, frame=frame, detail=detail))

    def read_files(
        self, files: Mapping[str, Path], read: Callable[[Path], _Result], chunk: int = 1
    ) -> Iterator[tuple[str, _Result]]:
        """Yield what `read` makes of each file; reject a file that it rejects, or that ends its process."""
        rejection = (Reason.BROKEN_FILE, "it ended the process that read it")
        results = spread(partial(_attempted, read), files.values(), chunk=chunk, lost=lambda _: rejection)
        for name, result in zip(files, results, strict=True):
            if isinstance(result, tuple):
                self.reject(name, *result)
            else:
                yield name, result

    def take(self, image: Image) -> None:
        """Put a frame into its study."""
        study_id = self.use(image, path_below(image.place, self.source))
        self.studies.setdefault(study_id, []).append(image)

    def use(self, image: Image, name: str) -> str:
        """Note a file of a frame's study, which is imported again if the file changes; return its id."""
        study_id, file = self.names.study(image.identity), self.candidates[name]
        self.files.setdefault(study_id, {})[name] = (file.size, file.stamp)
        return study_id


def _attempted(read: Callable[[Path], _Result], place: Path) -> _Result | tuple[Reason, str]:
    try:
        with broken():
            return read(place)
    except RejectedError as error:
        return error.reason, error.detail


def reject(
    file: str, reason: Reason, *, frame: int = 0, detail: str = "", study_id: str | None = None
) -> dict[str, Any]:
    """Return a line of rejects.jsonl; `file` is a file's id, never its name."""
    return {
        "schema": "reject-1",
        "stage": "intake",
        "study_id": study_id,
        "file": file,
        "frame": frame,
        "reason": str(reason),
        "message": reason.meaning + (f" ({detail})" if detail else ""),
    }


def path_below(file: Path, source: Path) -> str:
    """Return a file's path below the source: ids derive from it, so that a moved export keeps its ids."""
    return os.path.relpath(file, source) if source.is_dir() else file.name
