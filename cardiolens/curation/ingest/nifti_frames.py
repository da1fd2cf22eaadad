"""Turn the NIfTI files of an export into the frame records that DICOM files have too.

A layout says what each file is; without one, folders say whose it is, and its name what it shows.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from cardiolens.base.untrusted.bounded_files import parse_json, read_bytes
from cardiolens.curation.ingest.frame_records import (
    ORDINARY,
    WHOLE_CYCLE,
    Declared,
    HeaderRule,
    Identity,
    Image,
    MaskFrame,
    Person,
    RejectedError,
    vector,
)
from cardiolens.curation.ingest.layouts.assignment import Assignment, FileRole
from cardiolens.curation.ingest.layouts.information import Facts
from cardiolens.curation.ingest.nifti_file import Scan, is_nifti, scan
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

Rejection = tuple[Reason, str]


@dataclass
class NiftiSource:
    """NIfTI files and possible sidecars by path below the source."""

    files: dict[str, Path] = field(default_factory=dict)
    sidecars: dict[str, Path] = field(default_factory=dict)

    def takes(self, name: str, place: Path) -> bool:
        """Take a NIfTI file or a possible sidecar, and return whether it is one."""
        if is_nifti(name):
            self.files[name] = place
        elif name.lower().endswith(".json"):
            self.sidecars[name] = place
        return name in self.files or name in self.sidecars


@dataclass
class Frames:
    """Frames by file path, and rejects as (path, reason, detail)."""

    images: dict[str, list[Image]] = field(default_factory=dict)
    rejects: list[tuple[str, Reason, str]] = field(default_factory=list)
    used: dict[str, str] = field(default_factory=dict)  # sidecar, mask, information file → one of its images

    def change(self, path: str, **fields: Any) -> None:
        """Set fields of all frames of a file."""
        self.images[path] = [replace(image, **fields) for image in self.images[path]]

    def flag(self, path: str, *flags: Flag) -> None:
        """Add flags to all frames of a file."""
        self.images[path] = [replace(image, flags=(*image.flags, *flags)) for image in self.images[path]]


@dataclass(frozen=True, slots=True)
class Sidecar:
    """The allowed entries of a BIDS JSON sidecar; times in ms."""

    entries: Mapping[str, Any] = field(default_factory=dict)
    n_ignored: int = 0  # number of ignored entries

    @property
    def tags(self) -> tuple[str, ...]:
        """Names of entries; ignored entries share one name, because their own may name people."""
        return (*sorted(self.entries), *(("other entries of sidecars",) if self.n_ignored else ()))

    def text(self, name: str) -> str:
        """Return a text entry, or an empty string."""
        value = self.entries.get(name)
        return value.strip() if isinstance(value, str) else ""

    def words(self, name: str) -> tuple[str, ...]:
        """Return a list entry, or a text entry split at backslashes and underscores, in upper case."""
        value = self.entries.get(name)
        listed = re.split(r"[\\_]", value) if isinstance(value, str) else value
        entries = listed if isinstance(listed, list) else []
        return tuple(entry.strip().upper() for entry in entries if isinstance(entry, str))

    def number(self, name: str, scale: float = 1.0) -> float | None:
        """Return a finite number times `scale`; of a list the first number."""
        value = self.entries.get(name)
        value = value[0] if isinstance(value, list) and value else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return None
        return float(value) * scale

    @property
    def phases(self) -> float:
        """How many phases it tells: their number, or a time for each."""
        timing = self.entries.get("VolumeTiming")
        return max(self.number("CardiacNumberOfImages") or 0, len(timing) if isinstance(timing, list) else 0)


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
    role: FileRole | None = None  # by a layout
    declared: Declared | None = None  # of an image by a layout

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
        return (
            self.sequence == "cine"
            and (self.scan.phase_ms or 0) * (self.scan.grid[1] - 1) > _LONGEST_CYCLE_MS
        )


def nifti_frames(source: NiftiSource, assignment: Assignment | None, subject: str | None) -> Frames:
    """Read the frames of all NIfTI files; an unusable file becomes a reject.

    `subject`: a person's regular expression of a patient's name in paths, without a layout.
    """
    frames = Frames()
    sidecars = _read_sidecars(source, frames)
    paths = sorted(source.files, key=natural)
    if assignment is not None:
        frames.rejects += [(path, Reason.NOT_OF_LAYOUT, "") for path in paths if path not in assignment.roles]
        paths = [path for path in paths if path in assignment.roles]
    rule = ORDINARY if assignment is None else assignment.layout.header
    ways = [(source.files[path], rule) for path in paths]
    rejection = (Reason.BROKEN_FILE, "it ended the process that read it")
    results = spread(_scanned, ways, worth=len(ways) >= _WORTH, lost=lambda _: rejection)
    scans: dict[str, Scan] = {}
    for path, scanned in zip(paths, results, strict=True):
        if isinstance(scanned, tuple):
            frames.rejects.append((path, *scanned))
        else:
            scans[path] = scanned
    sidecar_of = {path: sidecars.get(_stem_path(path), Sidecar()) for path in paths}
    by_study: dict[str, list[_File]] = defaultdict(list)
    for file in _files(scans, sidecar_of, assignment, subject, frames):
        by_study[file.study].append(file)
    for members in by_study.values():
        images = [file for file in members if not file.name.is_mask]
        facts = Facts() if assignment is None else assignment.facts_of(members[0].patient)
        _add_study(images, {"ED": facts.ed, "ES": facts.es}, frames)
        if assignment is not None:
            usable = [file for file in images if file.path in frames.images]
            masks = [file for file in members if file.name.is_mask]
            _link_masks(usable, masks, frames, assignment.layout.labels or "")
            _add_facts(usable, facts, frames)
    for path in source.sidecars:
        owner = next((each for each in paths if _stem_path(each) == _stem_path(path)), None)
        if owner is not None:
            frames.used[path] = owner
        elif path not in frames.used and not any(path == line[0] for line in frames.rejects):
            reason = Reason.NO_IMAGE if assignment is None else Reason.NOT_OF_LAYOUT
            frames.rejects.append((path, reason, "a sidecar without an image"))
    return frames


def _scanned(way: tuple[Path, HeaderRule]) -> Scan | Rejection:
    """Return what a file holds, or why it holds nothing that can be used."""
    try:
        return scan(*way)
    except RejectedError as error:
        return error.reason, error.detail
    except MemoryError:
        return Reason.BROKEN_FILE, "it unpacks to too much"


def _read_sidecars(source: NiftiSource, frames: Frames) -> dict[str, Sidecar]:
    """Read the JSON sidecars of images, by folder and stem."""
    sidecars = {}
    stems = {_stem_path(path) for path in source.files}
    for path, place in source.sidecars.items():
        if _stem_path(path) not in stems:
            continue
        try:
            tree = dict[str, Any](parse_json(read_bytes(place, _MOST_BYTES)))
            entries = {name: tree[name] for name in ALLOWED if name in tree}
            sidecars[_stem_path(path)] = Sidecar(entries, len(tree) - len(entries))
        except (OSError, ValueError, TypeError) as error:
            detail = (
                f"a sidecar that cannot be read ({type(error).__name__}); its image is imported without it"
            )
            frames.rejects.append((path, Reason.BROKEN_FILE, detail))
    return sidecars


def _stem_path(path: str) -> str:
    return str(PurePosixPath(path).parent / stem(path))


def _files(
    scans: Mapping[str, Scan],
    sidecars: Mapping[str, Sidecar],
    assignment: Assignment | None,
    subject: str | None,
    frames: Frames,
) -> list[_File]:
    """Return the images whose patient is clear, and the masks that a layout names; reject the others."""
    roles = {} if assignment is None else assignment.roles
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
        if scanned.few_values and not (role is not None and name.is_mask):
            frames.rejects.append((path, Reason.MASK, "by its values"))
        elif name.is_mask and role is None:
            frames.rejects.append((path, Reason.MASK, "by its name"))
        elif sidecar.text("Modality").upper() not in ("", "MR", "MRI"):
            frames.rejects.append((path, Reason.NO_IMAGE, "its modality is not MR"))
        elif sidecar.text("BurnedInAnnotation").upper() == "YES":
            frames.rejects.append((path, Reason.BURNED_IN_TEXT, ""))
        elif role is not None:
            declared = None if assignment is None or name.is_mask else role.declared(assignment.layout)
            owner = (role.subject, role.study)
            files.append(_File(path, name, scanned, sidecar, *owner, number, role, declared))
        elif owner_of[path].unclear:
            frames.rejects.append((path, Reason.PATIENT_UNCLEAR, owner_of[path].unclear))
        else:
            owner = (owner_of[path].patient, owner_of[path].study)
            files.append(_File(path, name, scanned, sidecar, *owner, number))
    return files


def _add_study(files: Sequence[_File], moments: Mapping[str, int | None], frames: Frames) -> None:
    """Add the frames of one study: reject copies, join phases that are separate files.

    `moments`: the phases of a cine, from 1, that an information file calls end-diastole and end-systole.
    """
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
            _add_images(part, moments if "cine" in part[0].name.base else {}, by_copy, frames)


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
    moments: Mapping[str, int | None],
    by_copy: Mapping[tuple[str, int], str],
    frames: Frames,
) -> None:
    """Add the frames of one file, or of files with one phase each."""
    first, joined = part[0], len(part) > 1
    n_phases = len(part) if joined else first.scan.grid[1]
    series = f"{first.name.folder}/{first.name.base}" if joined else first.path
    numbers = [file.name.phase for file in part if file.name.phase is not None]
    is_short = len(numbers) >= WHOLE_CYCLE and max(numbers) - min(numbers) >= len(part)
    is_short |= WHOLE_CYCLE <= n_phases < first.sidecar.phases
    for rank, file in enumerate(part):
        n_slices, n_own, _, _ = file.scan.grid
        flags = (*file.scan.flags, *_contradictions(file), *[Flag.INCOMPLETE] * is_short)
        times = _times(file, n_phases)
        images = []
        for index in range(n_slices * n_own):
            slice_number, within = divmod(index, n_own)
            phase = rank if joined else within
            moment = file.name.moment if joined or n_phases == 1 else by_copy.get((file.path, phase), "")
            number = file.name.phase if joined else phase + 1
            declared = [name for name, at in moments.items() if at is not None and at == number]
            moment = declared[0] if declared and n_phases > 1 else moment
            image = _image(file, series, index, slice_number)
            rank_of_all = slice_number * n_phases + phase + 1
            timing = times(phase) if n_phases > 1 else {}
            images.append(replace(image, moment=moment, flags=flags, instance_number=rank_of_all, **timing))
        frames.images[file.path] = images


def _image(file: _File, series: str, index: int, slice_number: int) -> Image:
    """Return the record of frame `index` of a file, without what its phase tells."""
    scanned, sidecar = file.scan, file.sidecar
    matrix = np.diag([*scanned.lengths, 1.0]) if scanned.affine is None else scanned.affine
    column, row = (matrix[:3, k] / np.linalg.norm(matrix[:3, k]) for k in (0, 1))
    types = sidecar.words("ImageType")
    birth_date = sidecar.text("PatientBirthDate")
    return Image(
        place=scanned.place,
        frame=index,
        identity=Identity(file.patient, file.study, series, f"{file.path}#{index}", birth_date=birth_date),
        person=Person(
            sex=sidecar.text("PatientSex"),
            age=sidecar.text("PatientAge"),
            manufacturer=sidecar.text("Manufacturer"),
            tesla=sidecar.number("MagneticFieldStrength"),
        ),
        rows=scanned.grid[2],
        columns=scanned.grid[3],
        spacing=(scanned.lengths[1], scanned.lengths[0]),
        position=vector(matrix[:3, 3] + slice_number * matrix[:3, 2]),
        row_direction=vector(column),
        column_direction=vector(row),
        slope=scanned.slope,
        intercept=scanned.intercept,
        series_number=file.number,
        description=sidecar.text("SeriesDescription") or sidecar.text("ProtocolName") or file.words,
        protocol=file.words,
        sequence_name=sidecar.text("SequenceName") or sidecar.text("PulseSequenceName"),
        image_type=types,
        scanning=sidecar.words("ScanningSequence"),
        variant=sidecar.words("SequenceVariant"),
        options=sidecar.words("ScanOptions"),
        component=next((word for word in types[2:] if word in ("M", "P", "R", "I")), ""),
        thickness=scanned.lengths[2],
        inversion=sidecar.number("InversionTime", 1000.0),
        echo=sidecar.number("EchoTime", 1000.0),
        flip=sidecar.number("FlipAngle"),
        tags=(*scanned.texts, *sidecar.tags) if index == 0 else (),
        nifti=True,
        placed=scanned.affine is not None,
        places_mm=scanned.places_mm,
        doubt=scanned.doubt,
        declared=file.declared,
    )


def _contradictions(file: _File) -> list[Flag]:
    """Return flags for what sidecar or name contradict in a header."""
    scanned, rows, slices = file.scan, *map(file.sidecar.number, ("PixelSpacing", "SpacingBetweenSlices"))
    pairs = ((rows, scanned.lengths[1]), (slices if scanned.grid[0] > 1 else None, scanned.lengths[2]))
    differ = any(mm is not None and not np.isclose(mm, length, rtol=0.02) for mm, length in pairs)
    return [Flag.SPACING] * differ + [Flag.PHASES] * file.lasts_too_long


def _times(file: _File, n_phases: int) -> Callable[[int], dict[str, Any]]:
    """Return the times of a phase by the header or, of a named cine or first pass, evenly spaced ones."""
    is_cine, is_joined = file.sequence == "cine", file.scan.grid[1] == 1
    declared = None if is_joined or file.lasts_too_long else file.scan.phase_ms
    step = declared or (None if is_joined else file.sidecar.number("RepetitionTime", 1000.0))
    if step and step * (n_phases - 1) < _LONGEST_CYCLE_MS and (declared or is_cine):
        return lambda phase: {"trigger": phase * step}
    if step and step > _SHORTEST_BEAT_MS and (declared or not is_cine):
        return lambda phase: {"clock": phase * step / 1000.0, "temporal": phase + 1}
    if is_cine:
        return lambda phase: {"trigger": phase * _HEARTBEAT_MS / n_phases}
    return lambda phase: {"temporal": phase + 1} if file.sequence == "perfusion" else {}


def _add_facts(files: Sequence[_File], facts: Facts, frames: Frames) -> None:
    """Add what information files tell of a subject to its frames, and flags for what they contradict."""
    frames.used |= dict.fromkeys(facts.files, files[0].path if files else "")
    for file in files:
        images, phases = frames.images[file.path], file.scan.grid[1]
        is_beyond = phases > 1 and max(facts.ed or 0, facts.es or 0) > phases
        is_other = phases > WHOLE_CYCLE and facts.phases not in (None, phases)
        is_long = facts.slice_mm is not None and not np.isclose(
            facts.slice_mm, file.scan.lengths[2], rtol=0.02
        )
        frames.flag(
            file.path, *facts.flags, *[Flag.PHASES] * (is_beyond or is_other), *[Flag.SPACING] * is_long
        )
        person, layout = facts.person.completed_by(images[0].person), file.declared
        frames.change(file.path, person=person, of_set="" if layout is None else layout.layout)
        is_first_ed = file.role is not None and file.role.rule.first_phase == "ED" and phases > 1
        if is_first_ed and not any(image.moment == "ED" for image in images):
            frames.images[file.path] = [
                image if image.frame % phases else replace(image, moment="ED")
                for image in frames.images[file.path]
            ]


def _link_masks(images: Sequence[_File], masks: Sequence[_File], frames: Frames, labels: str) -> None:
    """Give each frame the mask that the layout names for its volume and phase; reject the other masks."""
    linked: dict[str, dict[int, MaskFrame]] = defaultdict(dict)
    for mask in masks:
        volumes = () if mask.role is None else mask.role.rule.mask_of
        files = [file for file in images if file.role is not None and file.role.rule.image in volumes]
        reasons = [_link(mask, file, frames.images[file.path], linked[file.path], labels) for file in files]
        for file, why in zip(files, reasons, strict=True):
            if why == _NO_PHASE:
                frames.flag(file.path, Flag.UNMASKED)
        if all(reasons):
            frames.rejects.append((mask.path, Reason.MASK, next(iter(reasons), "without an image") or ""))
        if images:
            frames.used[mask.path] = images[0].path
    for path, by_frame in linked.items():
        frames.images[path] = [replace(each, mask=by_frame.get(each.frame)) for each in frames.images[path]]


def _link(
    mask: _File, image: _File, frames: Sequence[Image], linked: dict[int, MaskFrame], labels: str
) -> str | None:
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
    phase = _phase_of(mask, image, frames) if m_phases == 1 else 0
    if phase is None:
        return _NO_PHASE
    for at in range(slices):
        for number in range(m_phases):
            mask_frame = MaskFrame(mask.scan.place, at * m_phases + number, labels)
            linked[at * phases + phase + number] = mask_frame
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
    is_first = image.role is not None and image.role.rule.first_phase == "ED" and not mask.name.moment
    return 0 if is_first else None
