"""Turn the NIfTI files of an export into the same frame records as DICOM files."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.untrusted.file_place import Place
from cardiolens.base.untrusted.resource_limits import limited
from cardiolens.curation.ingest.axis_order import cycles
from cardiolens.curation.ingest.image import Identity, Image, Reading, RejectedError, Vector
from cardiolens.curation.ingest.names import Name, name_of, natural, stem, subjects
from cardiolens.curation.ingest.nifti_file import PAIR_SUFFIXES, Scan, scan
from cardiolens.curation.ingest.pixels import MEMORY, SECONDS
from cardiolens.curation.ingest.reasons import Reason
from cardiolens.curation.ingest.sidecar import Sidecar, read_moments, read_sidecar
from cardiolens.curation.ingest.words import words_of
from cardiolens.runtime.processes import spread
from cardiolens.study.sequences import sequences

_HEARTBEAT_MS = 800.0  # assumed cycle if no times are known: only ranks count, so any length does
_FEWEST_PHASES = 8  # for pixels to tell whether phases form a cycle
_LONGEST_CYCLE_MS = 2500.0
_SHORTEST_BEAT_MS = 350.0
_INFO = "info.cfg"
_WORTH = 16  # files from which further processes gain more than their start takes

Rejection = tuple[Reason, str]
"""Why a file is left out, and a detail that quotes nothing of it."""

_DESCRIPTIONS = ("dataset_description.json", "participants.json", "samples.json")


@dataclass
class NiftiSource:
    """NIfTI files and possible sidecars by path below the source."""

    files: dict[str, Place] = field(default_factory=dict)
    sidecars: dict[str, Place] = field(default_factory=dict)

    def takes(self, name: str, place: Place) -> bool:
        """Record a possible sidecar and return True; whether it has an image is decided later."""
        lower = PurePosixPath(name).name.lower()
        if not (lower.endswith(".json") or lower == _INFO) or lower in _DESCRIPTIONS:
            return False
        self.sidecars[name] = place
        return True


@dataclass
class Frames:
    """Frames by file path, and rejects as (path, frame, reason, detail)."""

    images: dict[str, list[Image]] = field(default_factory=dict)
    rejects: list[tuple[str, int, Reason, str]] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)  # sidecar → one of its images


@dataclass(frozen=True, slots=True)
class _File:
    """A NIfTI file with its parsed name, scan, sidecar and keys."""

    path: str
    name: Name
    scan: Scan
    sidecar: Sidecar
    patient: str
    study: str
    number: int  # rank of the file within the export
    ringed: bool  # a mask of its grid shows rings around cavities


def nifti_frames(source: NiftiSource) -> Frames:
    """Read the frames of all NIfTI files; an unusable file becomes a reject."""
    frames = Frames()
    keys = subjects(sorted(source.files, key=natural))
    sidecars = _sidecars(source, frames)
    scans = _scans(source)
    rings: dict[str, list[Scan]] = defaultdict(list)
    for path, scanned in scans.items():
        if not isinstance(scanned, tuple) and scanned.ringed:
            rings[keys[path][1]].append(scanned)
    files: list[_File] = []
    for number, path in enumerate(sorted(source.files, key=natural), start=1):
        name = name_of(path)
        try:
            if path.lower().endswith(PAIR_SUFFIXES):
                raise RejectedError(Reason.NIFTI_PAIR)
            scanned = scans[path]
            if isinstance(scanned, tuple):
                raise RejectedError(*scanned)
            sidecar = _json_of(path, sidecars, frames)
            _check(name, scanned, sidecar)
        except RejectedError as error:
            _json_of(path, sidecars, frames)
            frames.rejects.append((path, 0, error.reason, error.detail))
            continue
        patient, study = keys[path]
        ringed = any(_same_grid(mask, scanned) for mask in rings[study])
        files.append(_File(path, name, scanned, sidecar, patient, study, number, ringed))
    moments = _moments(source, files, frames)
    by_study: dict[str, list[_File]] = defaultdict(list)
    for file in files:
        by_study[file.study].append(file)
    for members in by_study.values():
        _study(members, moments, frames)
    frames.rejects += [
        (path, 0, Reason.NO_IMAGE, "")
        for path in source.sidecars
        if path not in frames.used and not any(path == reject[0] for reject in frames.rejects)
    ]
    return frames


def _scans(source: NiftiSource) -> dict[str, Scan | Rejection]:
    """What each file holds, or why it holds nothing that can be used; read in worker processes."""
    paths = [path for path in source.files if not path.lower().endswith(PAIR_SUFFIXES)]
    ways = [(source.files[path], _tells_no_time(name_of(path))) for path in paths]
    scans = spread(_scan, ways, worth=len(ways) >= _WORTH, lost=lambda _: (Reason.READER_ENDED, ""))
    return dict(zip(paths, scans, strict=True))


def _scan(way: tuple[Place, bool]) -> Scan | Rejection:
    place, one_phase = way
    try:
        with limited(MEMORY + 4 * place.size(), SECONDS):
            return scan(place, one_phase=one_phase)
    except RejectedError as error:
        return error.reason, error.detail
    except MemoryError:
        return Reason.TOO_LARGE, ""
    except (OSError, ValueError) as error:
        return Reason.UNREADABLE, type(error).__name__


def _same_grid(mask: Scan, image: Scan) -> bool:
    """Return whether a mask and an image have the same slices, rows and columns at the same place."""
    if (mask.grid[0], *mask.grid[2:]) != (image.grid[0], *image.grid[2:]):
        return False
    return mask.affine is None or image.affine is None or np.allclose(mask.affine, image.affine, atol=0.1)


def _is_one_phase(name: Name) -> bool:
    return name.phase is not None or bool(name.moment)


def _tells_no_time(name: Name) -> bool:
    """Return whether a file's name declares one phase, or only sequences that are still pictures."""
    sequence_names = words_of(name.words, PurePosixPath(name.folder).name).sequences
    meanings = {sequences()[sequence].over_time for sequence in sequence_names}
    return meanings == {"nothing"} or _is_one_phase(name)


def _check(name: Name, scanned: Scan, sidecar: Sidecar) -> None:
    if name.is_mask or scanned.few_values:
        raise RejectedError(Reason.MASK, "by its name" if name.is_mask else "by its values")
    if sidecar.text("Modality").upper() not in ("", "MR", "MRI"):
        raise RejectedError(Reason.NOT_MR)
    if sidecar.text("BurnedInAnnotation").upper() == "YES":
        raise RejectedError(Reason.BURNED_IN_TEXT)


def _content(place: Place) -> bytes:
    try:
        return place.read()
    except Exception as error:  # noqa: BLE001 - zlib and zipfile raise errors of their own for damage
        raise RejectedError(Reason.BAD_SIDECAR, type(error).__name__) from None


def _sidecars(source: NiftiSource, frames: Frames) -> dict[str, tuple[str, Sidecar]]:
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


def _stem_path(path: str) -> str:
    return str(PurePosixPath(path).parent / stem(path))


def _json_of(path: str, sidecars: Mapping[str, tuple[str, Sidecar]], frames: Frames) -> Sidecar:
    sidecar = sidecars.get(_stem_path(path))
    if sidecar is None:
        return Sidecar()
    frames.used[sidecar[0]] = path
    return sidecar[1]


def _moments(source: NiftiSource, files: Sequence[_File], frames: Frames) -> dict[str, dict[str, int]]:
    """Read ED and ES from each Info.cfg, by folder."""
    moments: dict[str, dict[str, int]] = {}
    for path, place in source.sidecars.items():
        if PurePosixPath(path).name.lower() != _INFO:
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


def _study(files: Sequence[_File], moments: Mapping[str, Mapping[str, int]], frames: Frames) -> None:
    """Add the frames of one study: reject copies, join phases that are separate files."""
    unique: list[_File] = []
    declared_moments: dict[
        tuple[str, int], str
    ] = {}  # moments that names of copies declare, by file and phase
    for file in sorted(files, key=lambda file: (-len(file.scan.digests), file.number)):
        twin = next((candidate for candidate in unique if _is_part(file, candidate)), None)
        if twin is None:
            unique.append(file)
            continue
        if file.name.moment and twin.scan.grid[1] > 1:
            phase = twin.scan.digests.index(file.scan.digests[0]) % twin.scan.grid[1]
            declared_moments[twin.path, phase] = file.name.moment
        frames.rejects.append((file.path, 0, Reason.DUPLICATE, "its frames are in another file"))
    families: dict[tuple[Any, ...], list[_File]] = defaultdict(list)
    for file in sorted(unique, key=lambda file: file.number):
        families[_family(file)].append(file)
    for family in families.values():
        for part in _parts(family):
            _images(part, moments.get(part[0].name.folder, {}), declared_moments, frames)


def _is_part(one: _File, other: _File) -> bool:
    """Return whether another file holds all frames of a file at the same position."""
    if not set(one.scan.digests) <= set(other.scan.digests):
        return False
    first, second = one.scan.affine, other.scan.affine
    if first is None or second is None:
        return first is second
    along = np.cross(first[:3, 0], first[:3, 1])
    return bool(np.allclose(first[:3, :2], second[:3, :2], atol=1e-3)) and bool(along.any())


def _family(file: _File) -> tuple[Any, ...]:
    """Return the key that single-phase files of one volume share; other files get a unique key."""
    alone = file.scan.grid[1] > 1 or not _is_one_phase(file.name)
    affine = () if file.scan.affine is None else tuple(np.round(file.scan.affine, 3).ravel())
    return (file.path,) if alone else (file.name.folder, file.name.base, file.scan.grid, affine)


def _parts(family: Sequence[_File]) -> list[list[_File]]:
    """Return the family as one part, sorted by phase, if no phase repeats; else one part per file."""
    keys = [_order(file) for file in family]
    if len(set(keys)) == len(keys):
        return [[file for _, file in sorted(zip(keys, family, strict=True), key=lambda pair: pair[0])]]
    return [[file] for file in family]


def _order(file: _File) -> tuple[int, int]:
    moments = {"ED": 0, "": 1, "ES": 2}
    return (0 if file.name.phase is None else file.name.phase, moments[file.name.moment])


def _images(
    part: Sequence[_File],
    declared: Mapping[str, int],
    declared_moments: Mapping[tuple[str, int], str],
    frames: Frames,
) -> None:
    """Add the frames of one file, or of files with one phase each."""
    first = part[0]
    joined = len(part) > 1
    cyclic = _cycles(part) if joined else first.scan.axes.cyclic
    n_phases = len(part) if joined else first.scan.grid[1]
    series = f"{first.name.folder}/{first.name.base}" if joined else first.path
    for rank, file in enumerate(part):
        n_slices, own, _, _ = file.scan.grid
        images = []
        for index in range(n_slices * own):
            slice_number, within = divmod(index, own)
            phase = rank if joined else within
            number = file.name.phase if joined else phase + 1
            moment = (
                file.name.moment if joined or n_phases == 1 else declared_moments.get((file.path, phase), "")
            )
            moment = next((name for name, at in declared.items() if at == number and n_phases > 1), moment)
            images.append(_image(file, series, index, (slice_number, phase, n_phases), moment, cyclic=cyclic))
        frames.images[file.path] = images


def _cycles(part: Sequence[_File]) -> bool:
    """Return whether single-phase files form a cycle: few always do, many must end as they began."""
    if len(part) < _FEWEST_PHASES:
        return True
    return cycles([file.scan.middle for file in part if file.scan.middle is not None])


def _image(
    file: _File, series: str, index: int, at: tuple[int, int, int], moment: str, *, cyclic: bool
) -> Image:
    scanned, sidecar = file.scan, file.sidecar
    slice_number, phase, n_phases = at
    matrix = np.diag([*scanned.lengths, 1.0]) if scanned.affine is None else scanned.affine
    column, row = (matrix[:3, k] / np.linalg.norm(matrix[:3, k]) for k in (0, 1))
    trigger, clock, temporal = _times(scanned, sidecar, phase, n_phases, cyclic=cyclic)
    described = sidecar.text("SeriesDescription") or sidecar.text("ProtocolName")
    folders = PurePosixPath(file.name.folder).name
    named = (
        f"{file.name.words} {folders}"
        if folders and file.study.rstrip("/") != file.name.folder
        else file.name.words
    )
    named += " cine" if file.name.moment else ""  # only a cine has end-diastole and end-systole
    return Image(
        place=scanned.place,
        frame=index,
        identity=Identity(file.patient, file.study, series, f"{file.path}#{index}"),
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
        reading=Reading(
            evidence=scanned.axes.evidence,
            flags=scanned.flags,
            placed=scanned.affine is not None,
            one_phase=_tells_no_time(file.name),
            sure=scanned.axes.sure,
            ringed=file.ringed,
        ),
        moment=moment,
        tags=(*scanned.texts, *sidecar.tags) if index == 0 else (),
    )


def _times(
    scanned: Scan, sidecar: Sidecar, phase: int, n_phases: int, *, cyclic: bool
) -> tuple[float | None, float | None, int | None]:
    """Return trigger time (ms), clock (s) and temporal position of a phase."""
    if n_phases == 1:
        return None, None, None
    declared = None if scanned.grid[1] == 1 else scanned.phase_ms
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
