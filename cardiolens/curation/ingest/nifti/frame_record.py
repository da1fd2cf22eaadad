"""One frame of a NIfTI file as the record that a frame of DICOM has too."""

from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.curation.ingest.file_owners import tells_view
from cardiolens.curation.ingest.image import ORDINARY, Identity, Image, Reading, Vector
from cardiolens.curation.ingest.losses import Loss
from cardiolens.curation.ingest.names import Name
from cardiolens.curation.ingest.nifti.exported_files import FEWEST_PHASES, ExportedFile
from cardiolens.curation.ingest.nifti.nifti_file import SPACING_FLAGS, Scan
from cardiolens.curation.ingest.nifti.sidecar import Sidecar
from cardiolens.curation.ingest.nifti.time_in_names import meanings, tells_no_time

_HEARTBEAT_MS = 800.0  # assumed cycle if no times are known: only ranks count, so any length does
_LONGEST_CYCLE_MS = 2500.0
_SHORTEST_BEAT_MS = 350.0


def frame_record(
    file: ExportedFile,
    series: str,
    index: int,
    at: tuple[int, int, int],
    moment: str,
    *,
    cyclic: bool,
    is_short: bool,
) -> Image:
    """Return the record of frame `index` of a file; `at`: slice, phase, number of phases."""
    scanned, sidecar = file.scan, file.sidecar
    slice_number, phase, n_phases = at
    matrix = np.diag([*scanned.lengths, 1.0]) if scanned.affine is None else scanned.affine
    column, row = (matrix[:3, k] / np.linalg.norm(matrix[:3, k]) for k in (0, 1))
    trigger, clock, temporal = _times(file, phase, n_phases, cyclic=cyclic)
    described = sidecar.text("SeriesDescription") or sidecar.text("ProtocolName")
    named = _words_of_path(file)
    return Image(
        place=scanned.place,
        frame=index,
        identity=Identity(
            file.patient,
            file.study,
            series,
            f"{file.path}#{index}",
            birth_date=sidecar.text("PatientBirthDate"),
        ),
        person=sidecar.person(),
        rows=scanned.grid[2],
        columns=scanned.grid[3],
        spacing=(scanned.lengths[1], scanned.lengths[0]),
        position=_vector(matrix[:3, 3] + slice_number * matrix[:3, 2]),
        row_direction=_vector(column),
        column_direction=_vector(row),
        slope=scanned.slope,
        intercept=scanned.intercept,
        series_number=file.number,
        instance_number=index + 1,
        description=described or named,
        protocol=named,
        sequence_name=sidecar.text("SequenceName") or sidecar.text("PulseSequenceName"),
        image_type=sidecar.words("ImageType"),
        scanning=sidecar.words("ScanningSequence"),
        variant=sidecar.words("SequenceVariant"),
        options=sidecar.words("ScanOptions"),
        component=next((word for word in sidecar.words("ImageType")[2:] if word in ("M", "P", "R", "I")), ""),
        thickness=scanned.lengths[2],
        trigger=trigger,
        temporal=temporal,
        clock=clock,
        inversion=sidecar.number("InversionTime", 1000.0),
        echo=sidecar.number("EchoTime", 1000.0),
        flip=sidecar.number("FlipAngle"),
        reading=_reading(file, is_short=is_short),
        moment=moment,
        declared=None if file.role is None else file.role.declared,
        tags=(*scanned.texts, *sidecar.tags) if index == 0 else (),
    )


def _words_of_path(file: ExportedFile) -> str:
    """Return the words of a file's name, and of its folder if that tells a view."""
    folder = PurePosixPath(file.name.folder).name
    named = f"{file.name.words} {folder}" if tells_view(folder) else file.name.words
    return f"{named} cine" if file.name.moment else named  # only a cine has end-diastole and end-systole


def _reading(file: ExportedFile, *, is_short: bool) -> Reading:
    """Return how a file was read: what its axes rest on, and what contradicts its header."""
    scanned = file.scan
    contradictions = _contradictions(file.name, scanned, file.sidecar)
    return Reading(
        evidence=scanned.axes.evidence,
        flags=(*scanned.flags, *contradictions, *[Loss.PHASES] * is_short),
        placed=scanned.affine is not None,
        one_phase=file.role is None and tells_no_time(file.name),
        sure=scanned.axes.sure,
        rule=ORDINARY if file.role is None else file.role.rule,
        places_mm=scanned.places_mm,
        ringed=file.ringed,
        doubt=scanned.doubt,
    )


def phases_declared(sidecar: Sidecar) -> float:
    """Return how many phases a sidecar tells: their number, or a time for each."""
    return max(sidecar.number("CardiacNumberOfImages") or 0, sidecar.count("VolumeTiming"))


def _contradictions(name: Name, scanned: Scan, sidecar: Sidecar) -> list[str]:
    """Return flags for what sidecar or pixels contradict in a header."""
    rows, slices = sidecar.spacing()
    pairs = ((rows, scanned.lengths[1]), (slices, scanned.lengths[2] if scanned.grid[0] > 1 else None))
    flags = [
        SPACING_FLAGS[0]
        for stated_mm, length in pairs
        if stated_mm is not None and length is not None and not np.isclose(stated_mm, length, rtol=0.02)
    ]
    return flags[:1] + (["time_contradicted"] if _lasts_too_long(name, scanned) else [])


def _lasts_too_long(name: Name, scanned: Scan) -> bool:
    """Return whether frames that close a cycle last longer than a heartbeat by the header.

    A first pass takes a frame a heartbeat, and its last frames may look like its first.
    """
    phases = scanned.grid[1]
    cyclic = scanned.axes.cyclic and phases >= FEWEST_PHASES and "first_pass" not in meanings(name)
    return cyclic and scanned.phase_ms is not None and scanned.phase_ms * (phases - 1) > _LONGEST_CYCLE_MS


def _times(
    file: ExportedFile, phase: int, n_phases: int, *, cyclic: bool
) -> tuple[float | None, float | None, int | None]:
    """Return trigger time (ms), clock (s) and temporal position of a phase."""
    if n_phases == 1:
        return None, None, None
    scanned, sidecar = file.scan, file.sidecar
    declared = None if scanned.grid[1] == 1 or _lasts_too_long(file.name, scanned) else scanned.phase_ms
    step = declared or (None if scanned.grid[1] == 1 else sidecar.number("RepetitionTime", 1000.0))
    if step and step * (n_phases - 1) < _LONGEST_CYCLE_MS and (declared or cyclic):
        return phase * step, None, None
    if step and step > _SHORTEST_BEAT_MS and (declared or not cyclic):
        return None, phase * step / 1000.0, phase + 1
    if cyclic:
        return phase * _HEARTBEAT_MS / n_phases, None, None
    return None, None, phase + 1


def _vector(values: NDArray[Any]) -> Vector:
    x, y, z = (float(value) for value in values)
    return x, y, z
