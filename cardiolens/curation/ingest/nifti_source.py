"""Turn the NIfTI files of an export into the same frame records as DICOM files."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cardiolens.base.untrusted.file_place import Place
from cardiolens.base.untrusted.resource_limits import limited
from cardiolens.curation.ingest.axis_order import cycles
from cardiolens.curation.ingest.image import (
    ORDINARY,
    HeaderRule,
    Identity,
    Image,
    LooseMask,
    MaskFrame,
    Reading,
    RejectedError,
    Vector,
)
from cardiolens.curation.ingest.layouts.assignment import Assignment, FileRole
from cardiolens.curation.ingest.layouts.information import Facts
from cardiolens.curation.ingest.losses import Loss
from cardiolens.curation.ingest.names import Name, name_of, natural, stem, subjects
from cardiolens.curation.ingest.nifti_file import PAIR_SUFFIXES, SPACING_FLAGS, Scan, scan
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
_NO_PHASE = "nothing says which phase of its image it is of"
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
    masks: dict[str, list[LooseMask]] = field(default_factory=dict)  # of a study, by one of its images


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
    ringed: bool = False  # a mask of its grid shows rings around cavities
    role: FileRole | None = None  # by a layout


def nifti_frames(source: NiftiSource, assignment: Assignment | None = None) -> Frames:
    """Read the frames of all NIfTI files; an unusable file becomes a reject.

    An `assignment` says what each file is; without one, names and pixels do.
    """
    frames = Frames()
    sidecars = _sidecars(source, frames)
    if assignment is not None:
        return _frames_of_layout(source, assignment, sidecars, frames)
    keys = subjects(sorted(source.files, key=natural))
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
    return _scanned(paths, [(source.files[path], _tells_no_time(name_of(path)), ORDINARY) for path in paths])


_Way = tuple[Place, bool, HeaderRule]


def _scanned(paths: Sequence[str], ways: Sequence[_Way]) -> dict[str, Scan | Rejection]:
    scans = spread(_scan, ways, worth=len(ways) >= _WORTH, lost=lambda _: (Reason.READER_ENDED, ""))
    return dict(zip(paths, scans, strict=True))


def _scan(way: _Way) -> Scan | Rejection:
    place, one_phase, rule = way
    try:
        with limited(MEMORY + 4 * place.size(), SECONDS):
            return scan(place, one_phase=one_phase, rule=rule)
    except RejectedError as error:
        return error.reason, error.detail
    except MemoryError:
        return Reason.TOO_LARGE, ""
    except (OSError, ValueError) as error:
        return Reason.UNREADABLE, type(error).__name__


def _frames_of_layout(
    source: NiftiSource,
    assignment: Assignment,
    sidecars: Mapping[str, tuple[str, Sidecar]],
    frames: Frames,
) -> Frames:
    """Read the frames of the images that a layout names, with their masks and facts."""
    paths = [path for path in sorted(assignment.roles, key=natural) if path in source.files]
    ways = [(source.files[path], False, assignment.roles[path].rule) for path in paths]
    scans = _scanned(paths, ways)
    files: dict[str, list[_File]] = defaultdict(list)
    masks: dict[str, list[_File]] = defaultdict(list)
    for number, path in enumerate(paths, start=1):
        role, scanned = assignment.roles[path], scans[path]
        if isinstance(scanned, tuple):
            frames.rejects.append((path, 0, *scanned))
            continue
        if scanned.few_values and not role.is_mask:
            frames.rejects.append((path, 0, Reason.MASK, "by its values, where the layout expects an image"))
            continue
        sidecar = _json_of(path, sidecars, frames)
        file = _File(path, role.name, scanned, sidecar, role.subject, role.study, number, role=role)
        (masks if role.is_mask else files)[role.study].append(file)
    for study, members in files.items():
        facts = assignment.facts_of(members[0].patient)
        moments = {name: phase for name, phase in (("ED", facts.ed), ("ES", facts.es)) if phase is not None}
        volumes = {file.name.folder for file in members if "cine" in file.name.base}
        _study(members, dict.fromkeys(volumes, moments), frames)
        _link_masks(members, masks.pop(study, []), frames, assignment)
        _add_facts(members, facts, frames)
        image_path = next((file.path for file in members if file.path in frames.images), "")
        for path in facts.files:
            frames.used[path] = image_path
    frames.rejects += [
        (file.path, 0, Reason.MASK, "without an image") for group in masks.values() for file in group
    ]
    frames.rejects += [
        (path, 0, Reason.NOT_OF_LAYOUT, "") for path in source.files if path not in assignment.roles
    ]
    frames.rejects += [
        (path, 0, Reason.NOT_OF_LAYOUT, "")
        for path in source.sidecars
        if path not in frames.used and not any(path == reject[0] for reject in frames.rejects)
    ]
    return frames


def _link_masks(
    images: Sequence[_File],
    masks: Sequence[_File],
    frames: Frames,
    assignment: Assignment,
) -> None:
    """Give each frame the mask that the layout names for its volume and phase; reject the other masks."""
    linked: dict[str, dict[int, MaskFrame]] = defaultdict(dict)
    for mask in masks:
        if mask.role is None or assignment.is_unlabelled(mask.path):
            frames.rejects.append((mask.path, 0, Reason.MASK, "of an unlabelled part of the set"))
            continue
        first = next((file.path for file in images if file.path in frames.images), None)
        fitting = 0
        reasons: list[str] = []
        for image in images:
            if image.role is None or image.role.volume not in mask.role.mask_of:
                continue
            if image.path not in frames.images:
                continue
            why = _link(mask, image, frames.images[image.path], linked[image.path], assignment.labels)
            fitting += why is None
            if why == _NO_PHASE:
                frames.images[image.path] = [
                    _flagged(each, "mask_phase_unknown") for each in frames.images[image.path]
                ]
            reasons += [] if why is None else [why]
        why = "" if fitting else next(iter(reasons), "without an image")
        if why:
            frames.rejects.append((mask.path, 0, Reason.MASK, why))
        if first is not None:
            frames.used[mask.path] = first
            frames.masks.setdefault(first, []).append(_loose(mask, assignment.labels, why))
    for path, by_frame in linked.items():
        frames.images[path] = [
            image if image.frame not in by_frame else replace(image, mask=by_frame[image.frame])
            for image in frames.images[path]
        ]


def _loose(mask: _File, labels: str, why: str) -> LooseMask:
    assert mask.role is not None
    name = mask.name
    kind = " ".join((*mask.role.mask_of, name.moment)).strip()
    return LooseMask(mask.scan.place, mask.scan.grid, mask.scan.digests, kind, labels, mask.role.rule, why)


def _add_facts(files: Sequence[_File], facts: Facts, frames: Frames) -> None:
    """Add what information files tell of a subject to its frames, and flags for what they contradict."""
    for file in files:
        images = frames.images.get(file.path)
        if not images or file.role is None:
            continue
        flags = list(facts.doubts)
        phases = file.scan.grid[1]
        if phases > 1 and any(moment is not None and moment > phases for moment in (facts.ed, facts.es)):
            flags.append("ed_es_beyond_the_phases")
        if phases > _FEWEST_PHASES and facts.phases not in (None, phases):
            flags.append("phases_contradicted")
        if facts.slice_mm is not None and not np.isclose(facts.slice_mm, file.scan.lengths[2], rtol=0.02):
            flags.append(SPACING_FLAGS[0])
        if file.role.first_is_ed and phases > 1 and not any(image.moment == "ED" for image in images):
            images = [image if image.frame % phases else replace(image, moment="ED") for image in images]
        frames.images[file.path] = [_with_facts(image, facts, flags) for image in images]


def _flagged(image: Image, flag: str) -> Image:
    assert image.reading is not None
    return replace(image, reading=replace(image.reading, flags=(*image.reading.flags, flag)))


def _with_facts(image: Image, facts: Facts, flags: Sequence[str]) -> Image:
    assert image.reading is not None
    reading = replace(image.reading, flags=(*image.reading.flags, *flags))
    person = facts.person.completed_by(image.person)
    layout = "" if image.declared is None else image.declared.layout
    return replace(image, reading=reading, person=person, of_set=layout)


def _link(
    mask: _File, image: _File, frames: Sequence[Image], linked: dict[int, MaskFrame], labels: str
) -> str | None:
    """Link a mask to the frames of an image; return why it does not fit, or None."""
    slices, phases, rows, columns = image.scan.grid
    m_slices, m_phases, m_rows, m_columns = mask.scan.grid
    if (m_slices, m_rows, m_columns) != (slices, rows, columns):
        return f"its grid is {m_columns} x {m_rows} x {m_slices}, its image's {columns} x {rows} x {slices}"
    if not _same_lengths(mask.scan, image.scan):
        return "its voxels have another size than its image's"
    if _is_elsewhere(mask.scan, image.scan):
        return "its header places it elsewhere than its image"
    if m_phases == phases > 1:
        where = range(phases)
    else:
        if m_phases != 1:
            return f"it has {m_phases} phases, its image {phases}"
        phase = _phase_of(mask, image, frames)
        if phase is None:
            return _NO_PHASE
        where = range(phase, phase + 1)
    for number, phase in enumerate(where):
        for slice_number in range(slices):
            frame = slice_number * phases + phase
            linked[frame] = MaskFrame(
                mask.scan.place,
                slice_number * m_phases + number,
                labels,
                mask.role.rule if mask.role else ORDINARY,
            )
    return None


def _same_lengths(mask: Scan, image: Scan) -> bool:
    return bool(np.allclose(mask.lengths, image.lengths, rtol=0.01))


def _is_elsewhere(mask: Scan, image: Scan) -> bool:
    if mask.affine is None or image.affine is None:
        return False
    slices, _, rows, columns = image.grid
    corners = np.array([[0, 0, 0, 1], [columns, 0, 0, 1], [0, rows, 0, 1], [0, 0, slices, 1]]).T
    return bool(np.abs((mask.affine - image.affine) @ corners)[:3].max() > 0.5 * min(image.lengths[:2]))


def _phase_of(mask: _File, image: _File, frames: Sequence[Image]) -> int | None:
    """Return the phase of an image that a mask of one phase is of: by number, else by moment."""
    phases = image.scan.grid[1]
    if mask.name.phase is not None and phases > 1:
        return mask.name.phase - 1 if mask.name.phase <= phases else None
    if phases == 1:
        if mask.name.phase != image.name.phase:
            return None
        mine = {mask.name.moment, image.name.moment} - {""}
        return 0 if len(mine) <= 1 else None
    moments = {frame.moment: frame.frame % phases for frame in frames if frame.moment}
    if mask.name.moment in moments:
        return moments[mask.name.moment]
    first = image.role is not None and image.role.first_is_ed and not mask.name.moment
    return 0 if first else None


def _same_grid(mask: Scan, image: Scan) -> bool:
    """Return whether a mask and an image have the same slices, rows and columns at the same place."""
    if (mask.grid[0], *mask.grid[2:]) != (image.grid[0], *image.grid[2:]):
        return False
    return mask.affine is None or image.affine is None or np.allclose(mask.affine, image.affine, atol=0.1)


def _is_one_phase(name: Name) -> bool:
    return name.phase is not None or bool(name.moment)


def _tells_no_time(name: Name) -> bool:
    """Return whether a file's name declares one phase, or only sequences that are still pictures."""
    return _meanings(name) == {"nothing"} or _is_one_phase(name)


def _meanings(name: Name) -> set[str]:
    """What the frames of the sequences that a file's name tells are of over time."""
    sequence_names = words_of(name.words, PurePosixPath(name.folder).name).sequences
    return {sequences()[sequence].over_time for sequence in sequence_names}


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
    numbers = [file.name.phase for file in part if file.name.phase is not None]
    is_short = len(numbers) >= _FEWEST_PHASES and max(numbers) - min(numbers) >= len(part)
    is_short |= _FEWEST_PHASES <= n_phases < _phases_declared(first.sidecar)
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
            at = (slice_number, phase, n_phases)
            images.append(_image(file, series, index, at, moment, cyclic=cyclic, is_short=is_short))
        frames.images[file.path] = images


def _cycles(part: Sequence[_File]) -> bool:
    """Return whether single-phase files form a cycle: few always do, many must end as they began."""
    if len(part) < _FEWEST_PHASES:
        return True
    return cycles([file.scan.middle for file in part if file.scan.middle is not None])


def _image(
    file: _File,
    series: str,
    index: int,
    at: tuple[int, int, int],
    moment: str,
    *,
    cyclic: bool,
    is_short: bool,
) -> Image:
    scanned, sidecar = file.scan, file.sidecar
    slice_number, phase, n_phases = at
    matrix = np.diag([*scanned.lengths, 1.0]) if scanned.affine is None else scanned.affine
    column, row = (matrix[:3, k] / np.linalg.norm(matrix[:3, k]) for k in (0, 1))
    trigger, clock, temporal = _times(file, phase, n_phases, cyclic=cyclic)
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
            flags=(
                *scanned.flags,
                *_contradictions(file.name, scanned, sidecar),
                *[Loss.PHASES] * is_short,
            ),
            placed=scanned.affine is not None,
            one_phase=file.role is None and _tells_no_time(file.name),
            sure=scanned.axes.sure,
            rule=ORDINARY if file.role is None else file.role.rule,
            places_mm=scanned.places_mm,
            ringed=file.ringed,
        ),
        moment=moment,
        declared=None if file.role is None else file.role.declared,
        tags=(*scanned.texts, *sidecar.tags) if index == 0 else (),
    )


def _phases_declared(sidecar: Sidecar) -> float:
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
    cyclic = scanned.axes.cyclic and phases >= _FEWEST_PHASES and "first_pass" not in _meanings(name)
    return cyclic and scanned.phase_ms is not None and scanned.phase_ms * (phases - 1) > _LONGEST_CYCLE_MS


def _times(
    file: _File, phase: int, n_phases: int, *, cyclic: bool
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
