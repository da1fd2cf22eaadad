"""A volume in the `study-1` manifest (protocol 1.2 and 9, stage 0), with all checks that need no pixels."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.study.anatomy import Anatomy, Sequence, SliceAxis, heart
from cardiolens.study.anatomy import Sequence as SequenceKind
from cardiolens.study.layout import Layout, Order, even, resolve
from cardiolens.study.nifti import Header
from cardiolens.study.voxel_lengths import ALIKE, in_words

_BOTH = (
    "correct spacing_mm or file, or, if the length of the third axis is not the distance of slices, add "
    '"confirmed": ["spacing"]'
)
HeaderOf = Callable[[str], Header]  # reads the header of a volume by path


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a manifest may use besides its text."""

    anatomy: Anatomy
    header_of: HeaderOf | None = None


def completed(entry: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Return an entry with `volume_id`, `shape` and `spacing_mm` filled in.

    Without `header_of`, fill only `volume_id`. Values of the wrong type pass through; the manifest model
    rejects them. InputError if a header lacks a value.
    """
    filled, header_of = dict(entry), reading.header_of
    kind = _kind(entry, reading.anatomy)
    if filled.get("volume_id") is None:
        filled["volume_id"] = "" if kind is None else kind.volume_id(str(entry.get("view")))
    path = entry.get("path")
    missing = [name for name in ("shape", "spacing_mm") if filled.get(name) is None]
    if missing and header_of is not None and isinstance(path, str):
        try:
            header = header_of(path)
        except InputError as error:
            raise InputError(f"{missing[0]} is left out, and {path}: {error}") from None
        if "shape" in missing:
            filled["shape"] = list(header.shape)
        if "spacing_mm" in missing:
            filled["spacing_mm"] = _spacing(path, header, entry, kind)
    return filled


def check_spacing(
    declared: tuple[float, float, float], header: Header, *, slices_alone: bool, confirmed: bool = False
) -> None:
    """Raise InputError if a declared spacing differs from the header's, or if the header contradicts itself.

    Without `slices_alone` the third axis holds phases too: then its length is not compared if it is 1, a
    writer's default. `confirmed`: a person decided between the lengths of a header that contradicts itself,
    or that the length of such an axis is not the distance of slices.
    """
    is_filled = header.spacing_mm is not None and header.spacing_mm[2] != 1
    axes = 3 if slices_alone or (is_filled and not confirmed) else 2
    places = [lengths for lengths in (header.lengths.sform, header.lengths.pixdim) if lengths is not None]
    if header.lengths.contradicted and not _alike(places[0], places[1], axes):
        if confirmed and any(_alike(declared, lengths, axes) for lengths in places):
            return
        raise InputError(
            f"its header contradicts itself ({header.lengths.words}), and study.json says "
            f"{in_words(declared)}; expected one voxel size; find the right one out, state it in spacing_mm "
            "and add "
            '"confirmed": ["spacing"]'
        )
    if not confirmed and (doubt := header.lengths.doubt(declared)):
        raise InputError(
            f"{doubt}; expected lengths in mm; correct spacing_mm and file, or, if they are right, add "
            '"confirmed": ["spacing"]'
        )
    spacing = header.spacing_mm
    if spacing is not None and not _alike(declared, header.lengths.sheared(spacing, declared), axes):
        raise InputError(
            f"its spacing is {list(spacing[:axes])} mm; expected {list(declared[:axes])} as declared; "
            + ("correct spacing_mm or file, or leave spacing_mm out" if slices_alone else _BOTH)
        )


def check_turned(header: Header, *, confirmed: bool) -> None:
    """Raise InputError if sform and qform place the voxels differently, unless a person saw the display."""
    if header.lengths.turned and not confirmed:
        raise InputError(
            "its sform and qform place the voxels differently, so its header tells no orientation; expected "
            'one position in the patient; look at it (jobs/show_study.py) and add "confirmed": ["display"]'
        )


def _alike(first: tuple[float, ...], second: tuple[float, ...], axes: int) -> bool:
    return all(math.isclose(a, b, rel_tol=ALIKE) for a, b in list(zip(first, second, strict=False))[:axes])


def _kind(entry: Mapping[str, Any], anatomy: Anatomy) -> Sequence | None:
    sequence = entry.get("sequence")
    return anatomy.sequences.get(sequence) if isinstance(sequence, str) else None


def _spacing(path: str, header: Header, entry: Mapping[str, Any], kind: Sequence | None) -> list[float]:
    if header.spacing_mm is None:
        raise InputError(
            f"spacing_mm is left out, and the header of {path} declares none; expected three lengths in mm; "
            "give spacing_mm"
        )
    if header.lengths.contradicted:
        raise InputError(
            f"spacing_mm is left out, and the header of {path} contradicts itself ({header.lengths.words}); "
            'find the right lengths out, give them as spacing_mm and add "confirmed": ["spacing"]'
        )
    if not _holds_slices_alone(header.shape, entry, kind):
        raise InputError(
            f"spacing_mm is left out, and the third axis of {path} holds phases too, so its header does "
            "not give the distance of slices; expected three lengths in mm; give spacing_mm"
        )
    return list(header.spacing_mm)


def _holds_slices_alone(shape: tuple[int, ...], entry: Mapping[str, Any], kind: Sequence | None) -> bool:
    """Return whether the third axis holds slices alone, according to the declaration."""
    if len(shape) > 3 and shape[3:] != (1,):
        return True
    layout = entry.get("layout")
    layout = layout if isinstance(layout, Mapping) else {}
    if layout.get("n_phases") is not None:
        return bool(layout["n_phases"] == 1)
    if layout.get("order") == "explicit":
        frames = layout.get("frames")
        return isinstance(frames, list) and not any(isinstance(at, list) and any(at[1:]) for at in frames)
    return layout.get("order") == "static" or kind is None or kind.over_time == "nothing"


MOST_VOXELS = 1 << 29  # per volume; a cine of 20 slices, 60 phases, 512 x 512 pixels has 0.6 of this
MOST_FRAMES = 1 << 16  # per volume
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
