"""Find the sidecars of images, and the moments of folders, among the other files of an export."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from cardiolens.base.untrusted.file_place import Place
from cardiolens.curation.ingest.image import RejectedError
from cardiolens.curation.ingest.names import stem
from cardiolens.curation.ingest.nifti.exported_files import INFO, ExportedFile, Frames, NiftiSource
from cardiolens.curation.ingest.nifti.sidecar import Sidecar, read_moments, read_sidecar
from cardiolens.curation.ingest.reasons import Reason


def read_sidecars(source: NiftiSource, frames: Frames) -> dict[str, tuple[str, Sidecar]]:
    """Read the JSON sidecars of images, by folder and stem."""
    sidecars = {}
    stems = {_stem_path(path) for path in source.files}
    for path, place in source.sidecars.items():
        if path.lower().endswith(".json") and _stem_path(path) in stems:
            try:
                sidecars[_stem_path(path)] = path, read_sidecar(_content(place))
            except RejectedError as error:
                frames.rejects.append((path, 0, error.reason, error.detail))
    return sidecars


def sidecar_of(path: str, sidecars: Mapping[str, tuple[str, Sidecar]], frames: Frames) -> Sidecar:
    """Return the sidecar of an image, empty if it has none, and record that it is used."""
    sidecar = sidecars.get(_stem_path(path))
    if sidecar is None:
        return Sidecar()
    frames.used[sidecar[0]] = path
    return sidecar[1]


def moments_of_folders(
    source: NiftiSource, files: Sequence[ExportedFile], frames: Frames
) -> dict[str, dict[str, int]]:
    """Read ED and ES from each Info.cfg, by folder."""
    moments: dict[str, dict[str, int]] = {}
    for path, place in source.sidecars.items():
        if PurePosixPath(path).name.lower() != INFO:
            continue
        folder = str(PurePosixPath(path).parent)
        paths = [file.path for file in files if file.name.folder == folder]
        if paths:
            try:
                moments[folder] = read_moments(_content(place))
                frames.used[path] = paths[0]
            except RejectedError as error:
                frames.rejects.append((path, 0, error.reason, error.detail))
    return moments


def _stem_path(path: str) -> str:
    return str(PurePosixPath(path).parent / stem(path))


def _content(place: Place) -> bytes:
    try:
        return place.read()
    except Exception as error:  # noqa: BLE001 - zlib and zipfile raise errors of their own for damage
        raise RejectedError(Reason.BAD_SIDECAR, type(error).__name__) from None
