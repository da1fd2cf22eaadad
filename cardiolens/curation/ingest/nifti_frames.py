"""Turn the NIfTI files of an export into the frame records that DICOM files have too.

A layout says what each file is. Without one, its folders name the patient, and its name says what it shows.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes
from cardiolens.curation.ingest.assignment import Assignment, Facts
from cardiolens.curation.ingest.dicom import Header, person_of, pulse_of
from cardiolens.curation.ingest.export_files import Export
from cardiolens.curation.ingest.frame_records import (
    ORDINARY,
    WHOLE_CYCLE,
    Identity,
    Image,
    MaskFrame,
    Scan,
    vector,
)
from cardiolens.curation.ingest.nifti_file import scan
from cardiolens.curation.ingest.owners import FileRole, natural, role_by_name, roles_by_path, stem
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.words import words_of

_MOST_BYTES = 4 << 20  # of a sidecar
_HEARTBEAT_MS = 800.0  # assumed cycle if no times are known: only ranks count, so any length does
_PHASES, _MOST_PHASES = 50, 1000  # of a heartbeat, if each is a file of its own; of any
_RANKS = {"ED": 1, "ES": 2}  # of files that a moment names
_LONGEST_CYCLE_MS = 2500.0
_SHORTEST_BEAT_MS = 350.0
# Entries of a sidecar that are read, in the form of DICOM:
_TEXTS = (
    *("PatientID", "PatientBirthDate", "PatientSex", "PatientAge", "StudyInstanceUID", "Modality"),
    *("Manufacturer", "SeriesDescription", "ProtocolName", "SequenceName", "PulseSequenceName"),
    "BurnedInAnnotation",
)
_LISTS = ("ImageType", "ScanningSequence", "SequenceVariant", "ScanOptions")
_NUMBERS = {"EchoTime": 1000, "InversionTime": 1000}  # seconds become ms
_NUMBERS |= {"MagneticFieldStrength": 1, "FlipAngle": 1, "SliceThickness": 1, "CardiacNumberOfImages": 1}
_NUMBERS |= {"PixelSpacing": 1, "SpacingBetweenSlices": 1}
_OTHER_ENTRIES = "other entries of sidecars"  # share one name, because their own may name people


@dataclass(frozen=True, slots=True)
class _File:
    """A NIfTI file: what it is, its header and voxels, its sidecar."""

    path: str
    role: FileRole
    scan: Scan
    sidecar: Header
    number: int  # rank of the file within the export

    @property
    def sequence(self) -> str | None:
        """The sequence that the sidecar or the name says."""
        return words_of(self.sidecar.text("SeriesDescription"), self.role.words).sequence


def add_nifti(
    export: Export,
    places: Mapping[str, Path],
    jsons: Mapping[str, Path],
    assignment: Assignment | None,
    subject: str | None,
) -> None:
    """Add the frames of all NIfTI files by path below the source; an unusable file becomes a reject.

    `jsons`: possible sidecars; `subject`: a person's regular expression of a patient's name in paths,
    without a layout.
    """
    stems = {_stem_path(path) for path in places}
    sidecars = {path: place for path, place in jsons.items() if _stem_path(path) in stems}
    owners: dict[str, Image] = {}  # a frame of the image of each sidecar
    by_study: dict[str, list[_File]] = defaultdict(list)
    rule = ORDINARY if assignment is None else assignment.layout.header
    sorted_places = {path: places[path] for path in sorted(places, key=natural)}
    scans = dict(export.read_files(sorted_places, partial(scan, rule=rule)))
    for file in _files(export, scans, _read_sidecars(export, sidecars), assignment, subject):
        by_study[file.role.study].append(file)
    for members in by_study.values():
        facts = Facts() if assignment is None else assignment.facts[members[0].role.patient]
        frames = _frames(export, [file for file in members if not file.role.is_mask], facts)
        masks = [file for file in members if file.role.is_mask]
        usable = [file for file in members if file.path in frames]
        _link_masks(export, usable, masks, frames)
        for file in usable:
            owners.setdefault(_stem_path(file.path), frames[file.path][0])
            for image in frames[file.path]:
                export.take(image)
        for name in (*(file.path for file in members), *facts.files) if usable else ():
            export.use(frames[usable[0].path][0], name)
    for path in jsons:
        if owner := owners.get(_stem_path(path)):
            export.use(owner, path)
        elif path not in sidecars and (assignment is None or path not in assignment.information):
            reason = Reason.NO_IMAGE if assignment is None else Reason.NOT_OF_LAYOUT
            export.reject(path, reason, "a sidecar without an image")


def _read_sidecars(export: Export, places: Mapping[str, Path]) -> dict[str, Header]:
    """Read the allowed entries of the BIDS sidecars of images, by folder and stem; times in ms."""
    sidecars = {}
    for path, place in places.items():
        try:
            tree = dict[str, Any](parse_json(read_bytes(place, _MOST_BYTES)))
            entries = {
                name: _entry(name, tree[name]) for name in (*_TEXTS, *_LISTS, *_NUMBERS) if name in tree
            }
            others = {_OTHER_ENTRIES: None} if len(tree) > len(entries) else {}
            sidecars[_stem_path(path)] = Header((entries | others,))
        except (OSError, ValueError, TypeError, OverflowError) as error:
            why = f"a sidecar that cannot be read ({type(error).__name__}); its image is imported without it"
            export.reject(path, Reason.BROKEN_FILE, why)
    return sidecars


def _entry(name: str, value: Any) -> Any:
    """Return an entry of a sidecar in the form of DICOM: texts, lists of words, single numbers, ms."""
    if name in _LISTS:
        words = re.split(r"[\\_]", value) if isinstance(value, str) else value
        return [word for word in words if isinstance(word, str)] if isinstance(words, list) else None
    if name in _NUMBERS:
        value = value[0] if isinstance(value, list) and value else value
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return float(value) * _NUMBERS[name] if is_number else None
    return value if isinstance(value, str) else None


def _stem_path(path: str) -> str:
    return str(PurePosixPath(path).parent / stem(path))


def _files(
    export: Export,
    scans: Mapping[str, Scan],
    sidecars: Mapping[str, Header],
    assignment: Assignment | None,
    subject: str | None,
) -> Iterator[_File]:
    """Yield the images with a clear patient, and the masks that a layout names; reject the others."""
    sidecar_of = {path: sidecars.get(_stem_path(path), Header(({},))) for path in scans}
    if assignment is None:
        roles = {path: role_by_name(path) for path in scans}
        images = [path for path, role in roles.items() if not (role.is_mask or scans[path].few_values)]
        ids = {
            path: (sidecar_of[path].text("PatientID"), sidecar_of[path].text("StudyInstanceUID"))
            for path in images
        }
        roles |= roles_by_path(images, ids, subject)
    else:
        roles = dict(assignment.roles)
    from_zero = {role.series for role in roles.values() if role.phase == 0}
    for number, (path, scanned) in enumerate(scans.items(), start=1):
        role = roles[path]
        if role.phase is not None and role.series in from_zero:
            role = replace(role, phase=role.phase + 1)
        file = _File(path, role, scanned, sidecar_of[path], number)
        if rejection := _rejection(file, of_layout=assignment is not None):
            export.reject(path, *rejection)
        else:
            yield file


def _rejection(file: _File, *, of_layout: bool) -> tuple[Reason, str] | None:
    """Return why a file is left out, if it is."""
    role = file.role
    if file.scan.few_values and not (role.is_mask and of_layout):
        return Reason.MASK, "by its values"
    if role.is_mask and not of_layout:
        return Reason.MASK, "by its name"
    if file.sidecar.text("Modality").upper() not in ("", "MR", "MRI"):
        return Reason.NO_IMAGE, "its modality is not MR"
    if file.sidecar.text("BurnedInAnnotation").upper() == "YES":
        return Reason.BURNED_IN_TEXT, ""
    return (Reason.PATIENT_UNCLEAR, role.unclear) if role.unclear else None


def _frames(export: Export, files: Sequence[_File], facts: Facts) -> dict[str, list[Image]]:
    """Return the frames of one study by file, without copies; a phase that is a file shares a series."""
    unique: list[_File] = []
    moments: dict[str, dict[int, str]] = defaultdict(dict)  # that copies declare, by file and phase
    for file in sorted(files, key=lambda file: (-len(file.scan.digests), file.number)):
        twin = next((candidate for candidate in unique if _is_part(file.scan, candidate.scan)), None)
        if twin is None:
            unique.append(file)
            continue
        if file.role.moment and twin.scan.grid[1] > 1:
            phase = twin.scan.digests.index(file.scan.digests[0]) % twin.scan.grid[1]
            moments[twin.path][phase] = file.role.moment
        export.reject(file.path, Reason.DUPLICATE, "its frames are in another file")
    of_set = "" if export.layout is None else export.layout.name
    return {file.path: _images(file, moments[file.path], facts, of_set) for file in unique}


def _is_part(part: Scan, container: Scan) -> bool:
    """Return whether another file holds all frames of a file at the same position."""
    if not set(part.digests) <= set(container.digests):
        return False
    if part.affine is None or container.affine is None:
        return part.affine is container.affine
    return bool(np.allclose(part.affine[:3, :2], container.affine[:3, :2], atol=1e-3))


def _images(file: _File, by_copy: Mapping[int, str], facts: Facts, of_set: str) -> list[Image]:
    """Return the frames of a file; `by_copy`: moments of its phases that names of copies declare."""
    (n_slices, n_phases, _, _), role = file.scan.grid, file.role
    is_cine = role.declared is not None and role.declared.sequence == "cine"
    declared = {facts.ed: "ED", facts.es: "ES"} if is_cine else {}
    if n_phases > 1:
        phases: list[int | None] = [*range(1, n_phases + 1)]
        moments = [declared.get(phase, by_copy.get(at, "")) for at, phase in enumerate(phases)]
    else:
        phases = [_RANKS.get(role.moment) if role.phase is None else role.phase]
        moments = [role.moment if role.phase is None else declared.get(role.phase, role.moment)]
    record, step = _record(file, facts, of_set), _matrix(file.scan)[:3, 2]
    return [
        replace(
            record,
            frame=at * n_phases + rank,
            identity=replace(record.identity, instance=f"{file.path}#{at * n_phases + rank}"),
            position=vector(np.array(record.position) + at * step),
            instance_number=at * _MOST_PHASES + (1 if phase is None else phase),
            moment=moments[rank],
            tags=() if at or rank else record.tags,
            **({} if phase is None else _times(file, phase - 1)),
        )
        for at in range(n_slices)
        for rank, phase in enumerate(phases)
    ]


def _matrix(scanned: Scan) -> Any:
    return np.diag([*scanned.lengths, 1.0]) if scanned.affine is None else scanned.affine


def _record(file: _File, facts: Facts, of_set: str) -> Image:
    """Return the record of the first frame of a file, without what depends on its phase."""
    scanned, sidecar, matrix = file.scan, file.sidecar, _matrix(file.scan)
    column, row = (vector(matrix[:3, k] / np.linalg.norm(matrix[:3, k])) for k in (0, 1))
    types = sidecar.words("ImageType")
    birth_date = sidecar.text("PatientBirthDate")
    role = file.role
    is_one_of_several = file.scan.grid[1] == 1 and (role.phase is not None or bool(role.moment))
    series = role.series if is_one_of_several else file.path
    return Image(
        place=scanned.place,
        frame=0,
        identity=Identity(role.patient, role.study, series, file.path, birth_date=birth_date),
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
        texts=(sidecar.text("SeriesDescription", "ProtocolName") or role.words, role.words),
        image_type=types,
        component=next((word for word in types[2:] if word in ("M", "P", "R", "I")), ""),
        thickness=scanned.lengths[2],
        phases_declared=sidecar.whole_number("CardiacNumberOfImages"),
        flags=(*scanned.flags, *_contradictions(file, facts), *facts.flags),
        tags=(*scanned.texts, *sidecar.file),
        of_set=of_set,
        nifti=scanned,
        declared=role.declared,
    )


def _contradictions(file: _File, facts: Facts) -> list[Flag]:
    """Return flags for what sidecar or information files contradict in a header."""
    slices, phases, (_, rows_mm, slices_mm) = file.scan.grid[0], file.scan.grid[1], file.scan.lengths
    stated = [
        (file.sidecar.number("PixelSpacing"), rows_mm),
        (file.sidecar.number("SpacingBetweenSlices") if slices > 1 else None, slices_mm),
        (facts.slice_mm, slices_mm),
    ]
    differ = any(mm is not None and not np.isclose(mm, length, rtol=0.02) for mm, length in stated)
    is_beyond = phases > 1 and max(facts.ed or 0, facts.es or 0) > phases
    is_other = phases > WHOLE_CYCLE and facts.phases not in (None, phases)
    lasts_ms = (file.scan.phase_ms or 0) * (phases - 1)
    is_no_cycle = file.sequence == "cine" and lasts_ms > _LONGEST_CYCLE_MS
    return [Flag.SPACING] * differ + [Flag.PHASES] * (is_beyond or is_other or is_no_cycle)


def _times(file: _File, phase: int) -> dict[str, Any]:
    """Return the time of a phase, counted from 0, by the header; else evenly spaced in a cine."""
    step, last = file.scan.phase_ms, file.scan.grid[1] - 1
    if step and 0 < step * last < _LONGEST_CYCLE_MS:
        return {"trigger": phase * step}
    if step and last and step > _SHORTEST_BEAT_MS:
        return {"clock": phase * step / 1000.0, "temporal": phase + 1}
    if file.sequence == "cine":
        return {"trigger": phase * _HEARTBEAT_MS / (last + 1 if last else _PHASES)}
    return {"temporal": phase + 1} if file.sequence == "perfusion" else {}


def _link_masks(
    export: Export, images: Sequence[_File], masks: Sequence[_File], frames: dict[str, list[Image]]
) -> None:
    """Give each frame the mask that the layout names for its volume and phase; reject the other masks."""
    labels = "" if export.layout is None else export.layout.labels or ""
    for mask in masks:
        of_mask = [file for file in images if file.role.volume in mask.role.mask_of]
        reasons = [_link(mask, file, frames, labels) for file in of_mask]
        if all(reasons):
            export.reject(mask.path, Reason.MASK, next(iter(reasons), "without an image"))


def _is_aligned(mask: Scan, image: Scan) -> bool:
    """Return whether a mask has the slices, pixels, size of voxels and position of an image."""
    slices, _, rows, columns = image.grid
    if (mask.grid[0], *mask.grid[2:]) != (slices, rows, columns):
        return False
    if not np.allclose(mask.lengths, image.lengths, rtol=0.01):
        return False
    if mask.affine is None or image.affine is None:
        return True
    corners = np.array([[0, 0, 0, 1], [columns, 0, 0, 1], [0, rows, 0, 1], [0, 0, slices, 1]]).T
    apart = np.abs((mask.affine - image.affine) @ corners)[:3].max()
    return bool(apart <= 0.5 * min(image.lengths[:2]))


def _link(mask: _File, image: _File, images: dict[str, list[Image]], labels: str) -> str:
    """Give the frames of an image their mask; return why it does not fit, else nothing."""
    phases, m_phases = image.scan.grid[1], mask.scan.grid[1]
    if not _is_aligned(mask.scan, image.scan) or m_phases not in (1, phases):
        return "its grid, voxel size, position or phases are not those of its image"
    frames = images[image.path]
    first = _phase_of(mask, image, frames) if m_phases == 1 else 0
    if first is None:
        images[image.path] = [replace(each, flags=(*each.flags, Flag.UNMASKED)) for each in frames]
        return "nothing says which phase of its image it is of"
    for index, frame in enumerate(frames):
        at, phase = divmod(frame.frame, phases)
        if 0 <= phase - first < m_phases:
            linked = MaskFrame(mask.scan.place, at * m_phases + phase - first, labels)
            frames[index] = replace(frame, mask=linked)
    return ""


def _phase_of(mask: _File, image: _File, frames: Sequence[Image]) -> int | None:
    """Return the phase of an image that a mask of one phase is of: by number, else by moment."""
    phases = image.scan.grid[1]
    if phases == 1:
        moments = {mask.role.moment, image.role.moment} - {""}
        return 0 if mask.role.phase == image.role.phase and len(moments) <= 1 else None
    if mask.role.phase is not None:
        return mask.role.phase - 1 if 1 <= mask.role.phase <= phases else None
    phase_by_moment = {frame.moment: frame.frame % phases for frame in frames if frame.moment}
    return phase_by_moment.get(mask.role.moment)
