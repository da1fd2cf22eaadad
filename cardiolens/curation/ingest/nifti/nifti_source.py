"""Turn the NIfTI files of an export into the same frame records as DICOM files."""

from collections import defaultdict
from collections.abc import Mapping
from pathlib import PurePosixPath

import numpy as np

from cardiolens.curation.ingest.file_owners import owners
from cardiolens.curation.ingest.image import ORDINARY, RejectedError
from cardiolens.curation.ingest.layouts.assignment import Assignment
from cardiolens.curation.ingest.names import Name, name_of, natural
from cardiolens.curation.ingest.nifti.exported_files import ExportedFile, Frames, NiftiSource
from cardiolens.curation.ingest.nifti.file_scans import Rejection, read_scans
from cardiolens.curation.ingest.nifti.layout_frames import add_frames_of_layout
from cardiolens.curation.ingest.nifti.nifti_file import PAIR_SUFFIXES, Scan
from cardiolens.curation.ingest.nifti.sidecar import Sidecar
from cardiolens.curation.ingest.nifti.sidecar_files import moments_of_folders, read_sidecars, sidecar_of
from cardiolens.curation.ingest.nifti.study_frames import add_study
from cardiolens.curation.ingest.nifti.time_in_names import tells_no_time
from cardiolens.curation.ingest.reasons import Reason


def nifti_frames(
    source: NiftiSource, assignment: Assignment | None = None, subject: str | None = None
) -> Frames:
    """Read the frames of all NIfTI files; an unusable file becomes a reject.

    An `assignment` says what each file is; without one, names and pixels do. `subject`: a person's regular
    expression of a patient's name in paths.
    """
    frames = Frames()
    sidecars = read_sidecars(source, frames)
    if assignment is not None:
        return add_frames_of_layout(source, assignment, sidecars, frames)
    scans = _scans(source)
    keys = owners(
        sorted(source.files, key=natural),
        masks={path for path in source.files if _is_no_image(path, scans)},
        copies=_copies(scans),
        ids={path: sidecar_of(path, sidecars, frames).ids() for path in source.files},
        subject=subject,
    )
    rings: dict[str, list[Scan]] = defaultdict(list)
    for path, scanned in scans.items():
        if not isinstance(scanned, tuple) and scanned.ringed:
            rings[keys[path].study].append(scanned)
    files: list[ExportedFile] = []
    for number, path in enumerate(sorted(source.files, key=natural), start=1):
        name = name_of(path)
        try:
            if path.lower().endswith(PAIR_SUFFIXES):
                raise RejectedError(Reason.NIFTI_PAIR)
            scanned = scans[path]
            if isinstance(scanned, tuple):
                raise RejectedError(*scanned)
            sidecar = sidecar_of(path, sidecars, frames)
            _check(name, scanned, sidecar)
            owner = keys[path]
            if owner.unclear:
                raise RejectedError(Reason.PATIENT_UNCLEAR, owner.unclear)
        except RejectedError as error:
            sidecar_of(path, sidecars, frames)
            frames.rejects.append((path, 0, error.reason, error.detail))
            continue
        ringed = any(_same_grid(mask, scanned) for mask in rings[owner.study])
        files.append(ExportedFile(path, name, scanned, sidecar, owner.patient, owner.study, number, ringed))
    moments = moments_of_folders(source, files, frames)
    by_study: dict[str, list[ExportedFile]] = defaultdict(list)
    for file in files:
        by_study[file.study].append(file)
    for members in by_study.values():
        add_study(members, moments, frames)
    frames.rejects += [
        (path, 0, Reason.NO_IMAGE, "")
        for path in source.sidecars
        if path not in frames.used and not any(path == reject[0] for reject in frames.rejects)
    ]
    return frames


def _scans(source: NiftiSource) -> dict[str, Scan | Rejection]:
    """What each file holds, or why it holds nothing that can be used; read in worker processes."""
    paths = [path for path in source.files if not path.lower().endswith(PAIR_SUFFIXES)]
    return read_scans(paths, [(source.files[path], tells_no_time(name_of(path)), ORDINARY) for path in paths])


def _is_no_image(path: str, scans: Mapping[str, Scan | Rejection]) -> bool:
    scanned = scans.get(path)
    return not isinstance(scanned, Scan) or scanned.few_values or name_of(path).is_mask


def _copies(scans: Mapping[str, Scan | Rejection]) -> dict[str, str]:
    """Return a file of the same folder for each whose frames it holds all."""
    twins: dict[str, str] = {}
    folders: dict[str, list[tuple[str, set[str]]]] = defaultdict(list)
    for path, scanned in scans.items():
        if isinstance(scanned, Scan):
            folders[str(PurePosixPath(path).parent)].append((path, set(scanned.digests)))
    for members in folders.values():
        for path, frames in members:
            twin = next((each for each, digests in members if each != path and frames <= digests), None)
            if twin is not None:
                twins[path] = twin
    return twins


def _same_grid(mask: Scan, image: Scan) -> bool:
    """Return whether a mask and an image have the same slices, rows and columns at the same place."""
    if (mask.grid[0], *mask.grid[2:]) != (image.grid[0], *image.grid[2:]):
        return False
    return mask.affine is None or image.affine is None or np.allclose(mask.affine, image.affine, atol=0.1)


def _check(name: Name, scanned: Scan, sidecar: Sidecar) -> None:
    if name.is_mask or scanned.few_values:
        raise RejectedError(Reason.MASK, "by its name" if name.is_mask else "by its values")
    if sidecar.text("Modality").upper() not in ("", "MR", "MRI"):
        raise RejectedError(Reason.NOT_MR)
    if sidecar.text("BurnedInAnnotation").upper() == "YES":
        raise RejectedError(Reason.BURNED_IN_TEXT)
