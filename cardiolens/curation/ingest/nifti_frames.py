"""Turn the NIfTI files of an export into the frame records that DICOM files have too.

A layout says what each file is; without one, folders say whose it is, and its name what it shows.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes
from cardiolens.curation.ingest.dicom import Header, person_of, pulse_of
from cardiolens.curation.ingest.frame_records import (
    ORDINARY,
    WHOLE_CYCLE,
    Identity,
    Image,
    MaskFrame,
    Scan,
    attempted,
    vector,
)
from cardiolens.curation.ingest.layouts.assignment import Assignment, Facts, FileRole
from cardiolens.curation.ingest.nifti_file import scan
from cardiolens.curation.ingest.owners import Name, name_of, natural, owners, stem, tells_view
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.words import words_of
from cardiolens.runtime.processes import spread

_WORTH = 16  # files from which further processes gain more than their start takes
_MOST_BYTES = 4 << 20  # of a sidecar
_HEARTBEAT_MS = 800.0  # assumed cycle if no times are known: only ranks count, so any length does
_LONGEST_CYCLE_MS = 2500.0
_SHORTEST_BEAT_MS = 350.0
_NO_PHASE = "nothing says which phase of its image it is of"
ALLOWED = (
    *("PatientID", "PatientBirthDate", "PatientSex", "PatientAge", "StudyInstanceUID", "Modality"),
    *("Manufacturer", "MagneticFieldStrength", "SeriesDescription", "ProtocolName", "SequenceName"),
    *("PulseSequenceName", "ScanningSequence", "SequenceVariant", "ScanOptions", "ImageType", "EchoTime"),
    *("InversionTime", "RepetitionTime", "FlipAngle", "SliceThickness", "BurnedInAnnotation"),
    *("CardiacNumberOfImages", "PixelSpacing", "SpacingBetweenSlices", "VolumeTiming"),
)
_OTHER_ENTRIES = "other entries of sidecars"  # share one name, because their own may name people
_IN_SECONDS = {"EchoTime", "InversionTime", "RepetitionTime"}
_NUMBERS = _IN_SECONDS | {"MagneticFieldStrength", "FlipAngle", "SliceThickness", "CardiacNumberOfImages"}
_NUMBERS |= {"PixelSpacing", "SpacingBetweenSlices"}
_LISTS = {"ImageType", "ScanningSequence", "SequenceVariant", "ScanOptions"}


@dataclass
class Frames:
    """Frames by file path, and rejects as (path, reason, detail)."""

    images: dict[str, list[Image]] = field(default_factory=dict)
    rejects: list[tuple[str, Reason, str]] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)  # sidecar, mask, information file → one of its images


@dataclass(frozen=True, slots=True)
class _File:
    """A NIfTI file with its parsed name, scan, sidecar and keys."""

    path: str
    name: Name
    scan: Scan
    sidecar: Header
    patient: str
    study: str
    number: int  # rank of the file within the export
    role: FileRole | None = None  # by a layout

    @property
    def words(self) -> str:
        """The words of the name, and of the folder if that tells a view; only a cine has moments."""
        folder = PurePosixPath(self.name.folder).name
        words = [folder] * tells_view(folder) + ["cine"] * bool(self.name.moment)
        return " ".join((self.name.words, *words))

    @property
    def sequence(self) -> str | None:
        """The sequence that the sidecar or the name tells."""
        return words_of(self.sidecar.text("SeriesDescription"), self.words).sequence

    @property
    def lasts_too_long(self) -> bool:
        """Whether what is named a cine lasts longer than a heartbeat by the header."""
        lasts_ms = (self.scan.phase_ms or 0) * (self.scan.grid[1] - 1)
        return self.sequence == "cine" and lasts_ms > _LONGEST_CYCLE_MS

    @property
    def begins_at_ed(self) -> bool:
        """Whether a layout says that the first phase is end-diastole."""
        return self.role is not None and self.role.rule.first_phase == "ED"


def nifti_frames(
    places: Mapping[str, Path],
    jsons: Mapping[str, Path],
    assignment: Assignment | None,
    subject: str | None,
) -> Frames:
    """Read the frames of all NIfTI files by path below the source; an unusable file becomes a reject.

    `jsons`: possible sidecars; `subject`: a person's regular expression of a patient's name in paths,
    without a layout.
    """
    frames = Frames()
    sidecars = _read_sidecars(places, jsons, frames)
    paths = sorted(places, key=natural)
    if assignment is not None:
        frames.rejects += [(path, Reason.NOT_OF_LAYOUT, "") for path in paths if path not in assignment.roles]
        paths = [path for path in paths if path in assignment.roles]
    rule = ORDINARY if assignment is None else assignment.layout.header
    rejection = (Reason.BROKEN_FILE, "it ended the process that read it")
    read = partial(attempted, partial(scan, rule=rule))
    scans: dict[str, Scan] = {}
    results = spread(
        read, [places[path] for path in paths], worth=len(paths) >= _WORTH, lost=lambda _: rejection
    )
    for path, result in zip(paths, results, strict=True):
        if isinstance(result, Scan):
            scans[path] = result
        else:
            frames.rejects.append((path, *result))
    sidecar_of = {path: sidecars.get(_stem_path(path), Header(({},))) for path in paths}
    by_study: dict[str, list[_File]] = defaultdict(list)
    for file in _files(scans, sidecar_of, {} if assignment is None else assignment.roles, subject, frames):
        by_study[file.study].append(file)
    for members in by_study.values():
        facts = Facts() if assignment is None else assignment.facts_of(members[0].patient)
        layout = None if assignment is None else assignment.layout
        images = [file for file in members if not file.name.is_mask]
        _add_study(images, facts, "" if layout is None else layout.name, frames)
        usable = [file for file in images if file.path in frames.images]
        masks = [file for file in members if file.name.is_mask]
        _link_masks(usable, masks, frames, "" if layout is None else layout.labels or "")
        frames.used |= dict.fromkeys(facts.files, usable[0].path if usable else "")
    owner_of = {_stem_path(path): path for path in reversed(paths)}
    rejected = {path for path, _, _ in frames.rejects}
    for path in jsons:
        if owner := owner_of.get(_stem_path(path)):
            frames.used[path] = owner
        elif path not in frames.used and path not in rejected:
            reason = Reason.NO_IMAGE if assignment is None else Reason.NOT_OF_LAYOUT
            frames.rejects.append((path, reason, "a sidecar without an image"))
    return frames


def _read_sidecars(
    places: Mapping[str, Path], jsons: Mapping[str, Path], frames: Frames
) -> dict[str, Header]:
    """Read the allowed entries of the BIDS sidecars of images, by folder and stem; times in ms."""
    sidecars = {}
    stems = {_stem_path(path) for path in places}
    for path, place in jsons.items():
        if _stem_path(path) not in stems:
            continue
        try:
            tree = dict[str, Any](parse_json(read_bytes(place, _MOST_BYTES)))
            entries = {name: _entry(name, tree[name]) for name in ALLOWED if name in tree}
            others = {_OTHER_ENTRIES: None} if len(tree) > len(entries) else {}
            sidecars[_stem_path(path)] = Header((entries | others,))
        except (OSError, ValueError, TypeError, OverflowError) as error:
            why = f"a sidecar that cannot be read ({type(error).__name__}); its image is imported without it"
            frames.rejects.append((path, Reason.BROKEN_FILE, why))
    return sidecars


def _entry(name: str, value: Any) -> Any:
    """Return an entry of a sidecar in the form of DICOM: texts, lists of words, single numbers, ms."""
    if name in _LISTS:
        words = re.split(r"[\\_]", value) if isinstance(value, str) else value
        return [word for word in words if isinstance(word, str)] if isinstance(words, list) else None
    if name in _NUMBERS:
        value = value[0] if isinstance(value, list) and value else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) * (1000 if name in _IN_SECONDS else 1) if is_number else None
    return value if isinstance(value, str) or name == "VolumeTiming" else None


def _stem_path(path: str) -> str:
    return str(PurePosixPath(path).parent / stem(path))


def _files(
    scans: Mapping[str, Scan],
    sidecars: Mapping[str, Header],
    roles: Mapping[str, FileRole],
    subject: str | None,
    frames: Frames,
) -> list[_File]:
    """Return the images whose patient is clear, and the masks that a layout names; reject the others."""
    names = {path: roles[path].name if path in roles else name_of(path) for path in scans}
    loose = [
        path for path in scans if path not in roles and not (names[path].is_mask or scans[path].few_values)
    ]
    ids = {
        path: (sidecars[path].text("PatientID"), sidecars[path].text("StudyInstanceUID")) for path in loose
    }
    owner_of = owners(loose, ids, subject)
    files = []
    for number, (path, scanned) in enumerate(scans.items(), start=1):
        name, sidecar, role = names[path], sidecars[path], roles.get(path)
        reason, detail = None, ""
        if scanned.few_values and not (role is not None and name.is_mask):
            reason, detail = Reason.MASK, "by its values"
        elif name.is_mask and role is None:
            reason, detail = Reason.MASK, "by its name"
        elif sidecar.text("Modality").upper() not in ("", "MR", "MRI"):
            reason, detail = Reason.NO_IMAGE, "its modality is not MR"
        elif sidecar.text("BurnedInAnnotation").upper() == "YES":
            reason = Reason.BURNED_IN_TEXT
        elif role is None and owner_of[path].unclear:
            reason, detail = Reason.PATIENT_UNCLEAR, owner_of[path].unclear
        if reason is not None:
            frames.rejects.append((path, reason, detail))
            continue
        whose = (role.subject, role.study) if role else (owner_of[path].patient, owner_of[path].study)
        files.append(_File(path, name, scanned, sidecar, *whose, number, role))
    return files


def _add_study(files: Sequence[_File], facts: Facts, of_set: str, frames: Frames) -> None:
    """Add the frames of one study: reject copies, join phases that are separate files."""
    unique: list[_File] = []
    by_copy: dict[tuple[str, int], str] = {}  # moments that names of copies declare, by file and phase
    for file in sorted(files, key=lambda file: (-len(file.scan.digests), file.number)):
        twin = next((candidate for candidate in unique if _is_part(file.scan, candidate.scan)), None)
        if twin is None:
            unique.append(file)
            continue
        if file.name.moment and twin.scan.grid[1] > 1:
            phase = twin.scan.digests.index(file.scan.digests[0]) % twin.scan.grid[1]
            by_copy[twin.path, phase] = file.name.moment
        frames.rejects.append((file.path, Reason.DUPLICATE, "its frames are in another file"))
    families: dict[tuple[Any, ...], list[_File]] = defaultdict(list)
    for file in sorted(unique, key=lambda file: file.number):
        families[_family(file)].append(file)
    for family in families.values():
        ordered = sorted(family, key=_order)
        parts = [ordered] if len(set(map(_order, family))) == len(family) else [[file] for file in family]
        for part in parts:
            _add_images(part, facts, of_set, by_copy, frames)


def _is_part(part: Scan, container: Scan) -> bool:
    """Return whether another file holds all frames of a file at the same position."""
    if not set(part.digests) <= set(container.digests):
        return False
    if part.affine is None or container.affine is None:
        return part.affine is container.affine
    return bool(np.allclose(part.affine[:3, :2], container.affine[:3, :2], atol=1e-3))


def _family(file: _File) -> tuple[Any, ...]:
    """Return the key that single-phase files of one volume share; other files get a unique key."""
    if file.scan.grid[1] > 1 or (file.name.phase is None and not file.name.moment):
        return (file.path,)
    affine = () if file.scan.affine is None else tuple(np.round(file.scan.affine, 3).ravel())
    return file.name.folder, file.name.base, file.scan.grid, affine


def _order(file: _File) -> tuple[int, int]:
    return file.name.phase or 0, ("ED", "", "ES").index(file.name.moment)


def _add_images(
    part: Sequence[_File],
    facts: Facts,
    of_set: str,
    by_copy: Mapping[tuple[str, int], str],
    frames: Frames,
) -> None:
    """Add the frames of one file, or of files with one phase each, with what a set tells of them."""
    first, joined = part[0], len(part) > 1
    n_phases = len(part) if joined else first.scan.grid[1]
    series = f"{first.name.folder}/{first.name.base}" if joined else first.path
    numbers = [file.name.phase for file in part if file.name.phase is not None]
    is_short = len(numbers) >= WHOLE_CYCLE and max(numbers) - min(numbers) >= len(part)
    is_short |= WHOLE_CYCLE <= n_phases < _phases_told(first.sidecar)
    declared = {"ED": facts.ed, "ES": facts.es} if "cine" in first.name.base and n_phases > 1 else {}
    for rank, file in enumerate(part):
        n_slices, n_own, _, _ = file.scan.grid
        phases = [rank] if joined else range(n_own)
        moments = []
        for phase in phases:
            number = file.name.phase if joined else phase + 1
            named = file.name.moment if joined or n_phases == 1 else by_copy.get((file.path, phase), "")
            moments.append(next((name for name, at in declared.items() if at and at == number), named))
        if file.begins_at_ed and n_own > 1 and "ED" not in moments:
            moments[0] = "ED"
        times = _times(file, n_phases)
        record = _record(file, series, facts, of_set)
        flags = (*file.scan.flags, *_contradictions(file, facts), *[Flag.INCOMPLETE] * is_short)
        record = replace(record, flags=(*flags, *facts.flags))
        step = _matrix(file.scan)[:3, 2]
        frames.images[file.path] = [
            replace(
                record,
                frame=at * n_own + own,
                identity=replace(record.identity, instance=f"{file.path}#{at * n_own + own}"),
                position=vector(np.array(record.position) + at * step),
                instance_number=at * n_phases + phase + 1,
                moment=moments[own],
                tags=() if at or own else record.tags,
                **(times(phase) if n_phases > 1 else {}),
            )
            for at in range(n_slices)
            for own, phase in enumerate(phases)
        ]


def _phases_told(sidecar: Header) -> float:
    """Return how many phases a sidecar tells: their number, or a time for each."""
    timing = sidecar.value("VolumeTiming")
    declared_phases = sidecar.number("CardiacNumberOfImages") or 0
    return max(declared_phases, len(timing) if isinstance(timing, list) else 0)


def _matrix(scanned: Scan) -> Any:
    return np.diag([*scanned.lengths, 1.0]) if scanned.affine is None else scanned.affine


def _record(file: _File, series: str, facts: Facts, of_set: str) -> Image:
    """Return the record of the first frame of a file, without what its phase tells."""
    scanned, sidecar, matrix = file.scan, file.sidecar, _matrix(file.scan)
    column, row = (vector(matrix[:3, k] / np.linalg.norm(matrix[:3, k])) for k in (0, 1))
    birth_date = sidecar.text("PatientBirthDate")
    types = sidecar.words("ImageType")
    return Image(
        place=scanned.place,
        frame=0,
        identity=Identity(file.patient, file.study, series, file.path, birth_date=birth_date),
        person=facts.person.completed_by(person_of(sidecar)),
        pulse=pulse_of(sidecar),
        rows=scanned.grid[2],
        columns=scanned.grid[3],
        spacing=(scanned.lengths[1], scanned.lengths[0]),
        position=vector(matrix[:3, 3]),
        row_direction=column,
        column_direction=row,
        scale=scanned.scale,
        series_number=file.number,
        texts=(sidecar.text("SeriesDescription", "ProtocolName") or file.words, file.words),
        image_type=types,
        component=next((word for word in types[2:] if word in ("M", "P", "R", "I")), ""),
        thickness=scanned.lengths[2],
        tags=(*scanned.texts, *sidecar.file),
        of_set=of_set,
        nifti=scanned,
        declared=None if file.role is None else file.role.declared,
    )


def _contradictions(file: _File, facts: Facts) -> list[Flag]:
    """Return flags for what sidecar, name or information files contradict in a header."""
    slices, phases, (_, rows_mm, slices_mm) = file.scan.grid[0], file.scan.grid[1], file.scan.lengths
    stated = [
        (file.sidecar.number("PixelSpacing"), rows_mm),
        (file.sidecar.number("SpacingBetweenSlices") if slices > 1 else None, slices_mm),
        (facts.slice_mm, slices_mm),
    ]
    differ = any(mm is not None and not np.isclose(mm, length, rtol=0.02) for mm, length in stated)
    is_beyond = phases > 1 and max(facts.ed or 0, facts.es or 0) > phases
    is_other = phases > WHOLE_CYCLE and facts.phases not in (None, phases)
    return [Flag.SPACING] * differ + [Flag.PHASES] * (file.lasts_too_long or is_beyond or is_other)


def _times(file: _File, n_phases: int) -> Callable[[int], dict[str, Any]]:
    """Return the times of a phase by the header or, of a named cine or first pass, evenly spaced ones."""
    is_cine, is_joined = file.sequence == "cine", file.scan.grid[1] == 1
    declared = None if is_joined or file.lasts_too_long else file.scan.phase_ms
    step = declared or (None if is_joined else file.sidecar.number("RepetitionTime"))
    if step and step * (n_phases - 1) < _LONGEST_CYCLE_MS and (declared or is_cine):
        return lambda phase: {"trigger": phase * step}
    if step and step > _SHORTEST_BEAT_MS and (declared or not is_cine):
        return lambda phase: {"clock": phase * step / 1000.0, "temporal": phase + 1}
    if is_cine:
        return lambda phase: {"trigger": phase * _HEARTBEAT_MS / n_phases}
    return lambda phase: {"temporal": phase + 1} if file.sequence == "perfusion" else {}


def _link_masks(images: Sequence[_File], masks: Sequence[_File], frames: Frames, labels: str) -> None:
    """Give each frame the mask that the layout names for its volume and phase; reject the other masks."""
    for mask in masks:
        volumes = () if mask.role is None else mask.role.rule.mask_of
        files = [file for file in images if file.role is not None and file.role.rule.image in volumes]
        reasons = [_link(mask, file, frames.images, labels) for file in files]
        if all(reasons):
            frames.rejects.append((mask.path, Reason.MASK, next(iter(reasons), "without an image") or ""))
        if images:
            frames.used[mask.path] = images[0].path


def _link(mask: _File, image: _File, images: dict[str, list[Image]], labels: str) -> str | None:
    """Link a mask to the frames of an image; return why it does not fit, or None."""
    slices, phases, rows, columns = image.scan.grid
    m_slices, m_phases, m_rows, m_columns = mask.scan.grid
    if (m_slices, m_rows, m_columns) != (slices, rows, columns):
        return f"its grid is {m_columns} x {m_rows} x {m_slices}, its image's {columns} x {rows} x {slices}"
    if not np.allclose(mask.scan.lengths, image.scan.lengths, rtol=0.01):
        return "its voxels have another size than its image's"
    if mask.scan.affine is not None and image.scan.affine is not None:
        corners = np.array([[0, 0, 0, 1], [columns, 0, 0, 1], [0, rows, 0, 1], [0, 0, slices, 1]]).T
        apart = np.abs((mask.scan.affine - image.scan.affine) @ corners)[:3].max()
        if apart > 0.5 * min(image.scan.lengths[:2]):
            return "its header places it elsewhere than its image"
    if m_phases not in (1, phases):
        return f"it has {m_phases} phases, its image {phases}"
    frames = images[image.path]
    first = _phase_of(mask, image, frames) if m_phases == 1 else 0
    if first is None:
        images[image.path] = [replace(each, flags=(*each.flags, Flag.UNMASKED)) for each in frames]
        return _NO_PHASE
    for index, frame in enumerate(frames):
        at, phase = divmod(frame.frame, phases)
        if 0 <= phase - first < m_phases:
            linked = MaskFrame(mask.scan.place, at * m_phases + phase - first, labels)
            frames[index] = replace(frame, mask=linked)
    return None


def _phase_of(mask: _File, image: _File, frames: Sequence[Image]) -> int | None:
    """Return the phase of an image that a mask of one phase is of: by number, else by moment."""
    phases = image.scan.grid[1]
    if phases == 1:
        moments = {mask.name.moment, image.name.moment} - {""}
        return 0 if mask.name.phase == image.name.phase and len(moments) <= 1 else None
    if mask.name.phase is not None:
        return mask.name.phase - 1 if mask.name.phase <= phases else None
    phase_by_moment = {frame.moment: frame.frame % phases for frame in frames if frame.moment}
    if mask.name.moment in phase_by_moment:
        return phase_by_moment[mask.name.moment]
    return 0 if image.begins_at_ed and not mask.name.moment else None
