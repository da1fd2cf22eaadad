"""The `study-1` manifest (protocol 1.2 and 9, stage 0) and all checks that need no pixels."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)

from cardiolens.base.errors import InputError
from cardiolens.base.untrusted.bounded_files import decode, parse_json, read_bytes
from cardiolens.config.base import Spec, describe
from cardiolens.study.anatomy import Anatomy, SliceAxis, heart
from cardiolens.study.anatomy import Sequence as SequenceKind
from cardiolens.study.layout import Layout, Order, even, resolve
from cardiolens.study.manifest_defaults import Reading, completed
from cardiolens.study.nifti import Header, read_header

MANIFEST_NAME = "study.json"
MAX_ID_LENGTH = 128
MOST_VOXELS = 1 << 29  # per volume; a cine of 20 slices, 60 phases, 512 x 512 pixels has 0.6 of this
MOST_FRAMES = 1 << 16  # per volume
MOST_BYTES = 16 << 20  # size limit of study.json
_VOXEL_BYTES = 8  # size of the largest voxel type
_SLACK_BYTES = 64 << 20  # bytes of a file besides its voxels

Flag = Annotated[bool, Field(strict=True)]
Index = Annotated[int, Field(ge=0, strict=True)]
Count = Annotated[int, Field(gt=0, strict=True)]
Length = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class DisplayTransform(Spec):
    """Transform from a stored slice to the displayed frame: transpose, then flips (protocol 1.4)."""

    transpose: Flag = False
    flip_rows: Flag = False
    flip_cols: Flag = False


class LayoutDeclaration(Spec):
    """Declared grid of a volume; missing counts follow from the shape or are inferred."""

    order: Order = "slice_major"
    n_slices: Count | None = None
    n_phases: Count | None = None
    frames: tuple[tuple[Index, Index], ...] | None = None

    @model_validator(mode="after")
    def _explicit_frames(self) -> "LayoutDeclaration":
        if (self.order == "explicit") != (self.frames is not None):
            raise ValueError("layout.frames; expected with order 'explicit' and only there")
        return self


class MaskDeclaration(Spec):
    """The mask of a volume; preparation checks only its shape."""

    path: str
    sha256: Sha256 | None = None
    labels: str | None = None  # the label map of its values


@dataclass(frozen=True, slots=True)
class Timing:
    """The phases and slices of a volume that selectors use; slices are canonical ranks."""

    ed_phase: int
    es_phase: int
    key_layers: tuple[int, ...]


class VolumeManifest(Spec):
    """One volume of a study; `manifest_defaults` fills fields that an entry may leave out."""

    volume_id: str
    sequence: str
    view: str
    path: str
    shape: Annotated[tuple[Count, ...], Field(min_length=3, max_length=4)]
    spacing_mm: tuple[Length, Length, Length]
    layout: LayoutDeclaration = LayoutDeclaration()
    spatial_order: str = "unknown"
    key_layers: tuple[Index, ...] | None = None
    ed_phase: Index | None = None
    es_phase: Index | None = None
    layout_source: Literal["declared", "inferred"] = "declared"
    display_transform: DisplayTransform = DisplayTransform()
    sha256: Sha256 | None = None
    mask: MaskDeclaration | None = None
    t_on: Index | None = None
    t_peak: Index | None = None
    window: tuple[Finite, Finite] | None = None  # intensities shown as black and white
    take: Index | None = None  # which of several images of each slice to use
    confirmed: tuple[Literal["display", "layout", "spacing"], ...] = ()  # checks that a person overrules
    _anatomy: Anatomy = PrivateAttr(default_factory=heart)

    @model_validator(mode="before")
    @classmethod
    def _completed(cls, value: object, info: ValidationInfo) -> object:
        return completed(value, _reading(info)) if isinstance(value, dict) else value

    @property
    def anatomy(self) -> Anatomy:
        """The anatomy that sequence and view are names of."""
        return self._anatomy

    @property
    def slice_axis(self) -> SliceAxis | None:
        """The axis along which the slices are counted; None for a view whose layers have no order."""
        return self._anatomy.views[self.view].slices

    @property
    def stored_shape(self) -> tuple[int, ...]:
        """Declared shape without a singleton fourth axis."""
        return self.shape[:3] if self.shape[3:] == (1,) else self.shape

    @property
    def most_bytes(self) -> int:
        """Size limit of the volume's file, or of its mask's file, by the declared shape."""
        return math.prod(self.shape) * _VOXEL_BYTES + _SLACK_BYTES

    @property
    def apex_first(self) -> bool:
        """Whether stored slices run against the order of counting; long axes have no such order."""
        return self.slice_axis is not None and self.spatial_order == self.slice_axis.backward

    @property
    def known_order(self) -> str:
        """Order of the slices; the order of a single slice is always known."""
        layout = self.declared_layout()
        single = layout is not None and layout.n_slices == 1
        if not single or self.spatial_order != "unknown":
            return self.spatial_order
        return self._anatomy.orders[0] if self.slice_axis is None else self.slice_axis.forward

    @property
    def over_time(self) -> str:
        """Meaning of the phases: `cycle`, `first_pass` or `nothing`."""
        return self._anatomy.sequences[self.sequence].over_time

    def declared_layout(self) -> Layout | None:
        """Return the declared layout; None if the number of phases must be inferred from pixels."""
        stored = self.stored_layout()
        return stored if stored is None or self.take is None else Layout("static", stored.n_slices, 1)

    def stored_layout(self) -> Layout | None:
        """Return the layout of all stored frames, including those that `take` leaves out."""
        declared = self.layout
        undeclared = declared.n_slices is None and declared.n_phases is None
        follows = undeclared and declared.order != "explicit" and self.over_time == "nothing"
        order: Order = "static" if follows else declared.order
        return resolve(self.stored_shape, order, declared.n_slices, declared.n_phases, declared.frames or ())

    def timing(self, layout: Layout) -> Timing:
        """Return declared or default end-diastole, end-systole and key layers (protocol 1.2, rules 4, 5).

        The default end-systole rounds 0.37 * n_phases half up, in integers. InputError if out of range.
        """
        n_slices, n_phases = layout.n_slices, layout.n_phases
        ed = self.ed_phase or 0
        es = (ed + (37 * n_phases + 50) // 100) % n_phases if self.es_phase is None else self.es_phase
        for name, phase in (("ed_phase", ed), ("es_phase", es), ("t_on", self.t_on), ("t_peak", self.t_peak)):
            if phase is not None and phase >= n_phases:
                raise InputError(f"{name} is {phase}; expected 0..{n_phases - 1}; correct {name}")
        layers = even(n_slices, 3) if self.key_layers is None else self.key_layers
        ordered = list(layers) == sorted(set(layers))
        if not ordered or len(layers) != min(3, n_slices) or max(layers) >= n_slices:
            raise InputError(
                f"key_layers is {list(layers)}; expected {min(3, n_slices)} ascending canonical ranks in "
                f"0..{n_slices - 1}; correct key_layers or leave it null"
            )
        return Timing(ed, es, tuple(layers))

    @model_validator(mode="after")
    def _legal(self, info: ValidationInfo) -> "VolumeManifest":
        self._anatomy = _reading(info).anatomy
        self._check_size()
        self._check_view()
        self._check_first_pass()
        self._check_window()
        self._check_take()
        layout = self.declared_layout()
        if layout is None and self.layout.order != "slice_major":
            raise ValueError(
                f"layout_unresolved: order {self.layout.order!r} without counts; expected n_slices and "
                "n_phases, as phases can be inferred for slice_major only; declare them"
            )
        if layout is not None:
            self.timing(layout)
        return self

    def _check_size(self) -> None:
        """Refuse a huge volume before allocating anything: a few bytes of JSON can declare any size."""
        for what, most, count in (
            ("voxels", MOST_VOXELS, math.prod(self.shape)),
            ("frames", MOST_FRAMES, math.prod(self.shape[2:])),
        ):
            if count > most:
                raise ValueError(f"shape has {count:,} {what}; expected at most {most:,}; correct shape")

    def _check_view(self) -> None:
        sequence = self._kind()
        if self.view not in sequence.views:
            raise ValueError(
                f"unknown view {self.view!r} of sequence {self.sequence!r}; expected one of "
                f"{', '.join(sequence.views)}; correct view"
            )
        if self.volume_id != sequence.volume_id(self.view):
            raise ValueError(
                f"volume_id is {self.volume_id!r}; expected {sequence.volume_id(self.view)!r} for sequence "
                f"{self.sequence!r} and view {self.view!r}; correct volume_id"
            )
        axis = self.slice_axis
        orders = self._anatomy.orders if axis is None else (axis.forward, axis.backward, "unknown")
        if self.spatial_order not in orders:
            raise ValueError(
                f"spatial_order is {self.spatial_order!r}; expected one of {', '.join(orders)}; correct "
                "spatial_order"
            )

    def _kind(self) -> SequenceKind:
        legal = self._anatomy.sequences
        if self.sequence not in legal:
            raise ValueError(
                f"unknown sequence {self.sequence!r}; expected one of {', '.join(legal)}; correct sequence, "
                "or name the protocol whose anatomy.yaml has it"
            )
        return legal[self.sequence]

    def _check_window(self) -> None:
        if self.window is not None and not self.window[0] < self.window[1]:
            raise ValueError(
                f"window is {list(self.window)}; expected the intensities shown as black and white, low "
                "below high; correct window or leave it out"
            )

    def _check_take(self) -> None:
        """Refuse several images per slice in a sequence without phases, unless `take` selects one."""
        stored = self.stored_layout() if self.over_time == "nothing" else None
        n = 1 if stored is None else stored.n_phases
        if n > 1 and self.take is None:
            raise ValueError(
                f"shape {list(self.shape)} holds {n} images of each slice, and {self.sequence} has no "
                "phases: magnitude and phase-sensitive images, or repeats; expected one; name it by take "
                f"(0..{n - 1})"
            )
        if self.take is not None and (n == 1 or self.take >= n):
            raise ValueError(
                f"take is {self.take}; expected 0..{n - 1} of several images of each slice of a sequence "
                "without phases; correct take or remove it"
            )

    def _timed(self) -> str:
        kinds = self._anatomy.sequences.items()
        return ", ".join(name for name, kind in kinds if kind.over_time == "first_pass") or "a first pass"

    def _check_first_pass(self) -> None:
        declared = [time for time in (self.t_on, self.t_peak) if time is not None]
        if declared and self.over_time != "first_pass":
            raise ValueError(
                f"t_on or t_peak of a {self.sequence} volume; expected with {self._timed()} only; remove it"
            )
        if len(declared) == 1 or declared != sorted(declared):
            raise ValueError(
                f"t_on is {self.t_on} and t_peak {self.t_peak}; expected both with t_on <= t_peak, or neither"
            )


def _reading(info: ValidationInfo) -> Reading:
    return info.context if isinstance(info.context, Reading) else Reading(heart())


def _band(value: str) -> str:
    ends = [int(end) for end in re.findall(r"\d+", value)]
    if len(ends) == 2 and ends[1] - ends[0] < NARROWEST_BAND - 1:
        raise ValueError(
            f"{value!r} spans fewer than {NARROWEST_BAND} years; expected a band such as 40-49 or 90+; "
            "widen it"
        )
    return value


LINKS_ALLOWED = ", or allow links with dataset.allow_links=true and dataset.link_roots=[folder]"
NARROWEST_BAND = 5  # years; narrower bands come close to a date of birth
AgeBand = Annotated[str, Field(pattern=r"^[0-9]{1,3}(-[0-9]{1,3}|\+)$"), AfterValidator(_band)]
Label = Annotated[str, Field(pattern=r"^[^\x00-\x1f\x7f]{1,64}$")]


class StudyManifest(Spec):
    """The content of study.json: study, patient, cohorts and volumes."""

    schema_: Annotated[Literal["study-1"], Field(alias="schema")]
    study_id: str
    patient_id: Annotated[str, Field(min_length=1)]
    cohort: tuple[str, ...] = ()
    species: str = "human"
    report_id: str | None = None
    sex: Literal["female", "male", "other"] | None = None
    age_band: AgeBand | None = None
    vendor: Label | None = None
    field_tesla: Annotated[float, Field(gt=0, le=20, strict=True)] | None = None
    site: Label | None = None
    height_cm: Annotated[float, Field(gt=30, lt=260, allow_inf_nan=False, strict=True)] | None = None
    weight_kg: Annotated[float, Field(gt=1, lt=400, allow_inf_nan=False, strict=True)] | None = None
    volumes: Annotated[tuple[VolumeManifest, ...], Field(min_length=1)]

    @property
    def subgroups(self) -> dict[str, str]:
        """Subgroups of patient and scanner, by attribute (protocol 16.11)."""
        groups = {"sex": self.sex, "age band": self.age_band, "vendor": self.vendor, "site": self.site}
        groups |= {"field strength": None if self.field_tesla is None else f"{self.field_tesla:g} T"}
        return {name: value for name, value in groups.items() if value is not None}

    @field_validator("study_id")
    @classmethod
    def _safe_id(cls, value: str) -> str:
        legal = 0 < len(value) <= MAX_ID_LENGTH and value.isprintable() and value != "."
        if not legal or ".." in value or "/" in value or "\\" in value:
            raise ValueError(
                f"expected 1 to {MAX_ID_LENGTH} printable characters without path separators or '..'; "
                "rename the study"
            )
        return value

    @model_validator(mode="after")
    def _one_volume_a_view(self) -> "StudyManifest":
        for volume_id, count in Counter(volume.volume_id for volume in self.volumes).items():
            if count > 1:
                raise ValueError(
                    f"{count} volumes of view {volume_id!r}; expected one per view; keep one of them"
                )
        return self


@dataclass(frozen=True, slots=True)
class Study:
    """A study folder with its checked manifest."""

    folder: Path
    manifest: StudyManifest
    manifest_sha256: str

    @property
    def study_id(self) -> str:
        return self.manifest.study_id

    @property
    def anatomy(self) -> Anatomy:
        return self.manifest.volumes[0].anatomy

    @property
    def n_pixels(self) -> int:
        """Number of pixels of all frames, by the declared shapes."""
        return sum(math.prod(volume.shape) for volume in self.manifest.volumes)

    def files(self) -> tuple[str, ...]:
        """Return the paths of all volumes and masks in the manifest, relative to the folder."""
        masks = (volume.mask.path for volume in self.manifest.volumes if volume.mask)
        return (*(volume.path for volume in self.manifest.volumes), *masks)


def read_study(folder: Path, roots: Sequence[Path] = (), anatomy: Anatomy | None = None) -> Study:
    """Read and check the manifest of a study folder; InputError names the file and what is wrong.

    Symbolic links may lead into the folders `roots`, and otherwise not out of the study folder. Fields that a
    volume's entry leaves out are taken from the header of its file. `anatomy` has the legal sequences and
    views; by default the heart's.
    """

    def header_of(path: str) -> Header:
        check_inside(folder, path, roots)
        return read_header(folder / path)

    if shown_name(folder) != folder.name:
        raise InputError("the folder's name is not UTF-8; expected a name that tables can hold; rename it")
    check_inside(folder, MANIFEST_NAME, roots)
    try:
        stored = read_bytes(folder / MANIFEST_NAME, MOST_BYTES)
        text = decode(stored)
        manifest = StudyManifest.model_validate_json(text, context=Reading(anatomy or heart(), header_of))
        parse_json(text)
    except OSError as error:
        raise InputError(
            f"{MANIFEST_NAME}: cannot be read ({error.strerror}); expected the study-1 manifest of the "
            "study; write it (of DICOM files, python -m cardiolens.ingest does) or remove the folder"
        ) from None
    except ValidationError as error:
        wrong = describe(error).removeprefix(": ")  # the prefix of errors about the study as a whole
        raise InputError(f"{MANIFEST_NAME}: {wrong}; correct {MANIFEST_NAME}") from None
    except ValueError as error:  # duplicate keys, of which pydantic takes the last
        raise InputError(f"{MANIFEST_NAME}: {error}; correct {MANIFEST_NAME}") from None
    study = Study(folder, manifest, hashlib.sha256(stored).hexdigest())
    for path in study.files():
        check_inside(folder, path, roots)
    return study


def shown_name(folder: Path) -> str:
    """Return a folder's name as text; bytes that are not UTF-8 become escapes."""
    return folder.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def check_inside(folder: Path, path: str, roots: Sequence[Path]) -> None:
    """Refuse a path that leads out of the folder, also through symbolic links, unless these end in `roots`.

    Otherwise a planted link could expose the data of another study. Messages never give the target of a
    link: archive names are often patient names.
    """
    try:
        target = (folder / path).resolve()
        inside = bool(path) and target.is_relative_to(folder.resolve())
        by_link = bool(path) and not Path(path).is_absolute() and ".." not in Path(path).parts
        inside |= by_link and any(target.is_relative_to(root.resolve()) for root in roots)
    except (ValueError, RuntimeError):  # a NUL in the path; a link that leads back to itself
        inside = by_link = False
    if inside:
        return
    if by_link and roots:
        raise InputError(
            f"{path}: is a link that leads out of dataset.studies and dataset.link_roots; expected a file "
            "within them; name the folder of its file in dataset.link_roots"
        )
    raise InputError(
        f"{path}: leads out of the study folder; expected a file inside it, also after following "
        f"symbolic links; copy the file into the folder{LINKS_ALLOWED if by_link else ''}"
    )
