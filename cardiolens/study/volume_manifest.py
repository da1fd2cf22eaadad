"""A volume in the `study-1` manifest (protocol 1.2 and 9, stage 0), and its checks against a header."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field, PrivateAttr, ValidationInfo, model_validator

from cardiolens.base.errors import InputError
from cardiolens.config.base import Spec
from cardiolens.study.anatomy import Anatomy, Sequence, SliceAxis, heart
from cardiolens.study.nifti import Header, Lengths, in_words
from cardiolens.study.structure import Layout, Order, even, resolve

MOST_VOXELS = 1 << 29  # per volume; a cine of 20 slices, 60 phases, 512 x 512 pixels has 0.6 of this
MOST_FRAMES = 1 << 16  # per volume
_VOXEL_BYTES = 8  # size of the largest voxel type
_SLACK_BYTES = 64 << 20  # bytes of a file besides its voxels
_CONFIRM_SPACING = 'if they are right, add "confirmed": ["spacing"]'

Flag = Annotated[bool, Field(strict=True)]
Index = Annotated[int, Field(ge=0, strict=True)]
Count = Annotated[int, Field(gt=0, strict=True)]
Length = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


@dataclass(frozen=True, slots=True)
class Reading:
    """What reading a manifest may use besides its text."""

    anatomy: Anatomy
    header_of: Callable[[str], Header] | None = None  # reads the header of a volume by path


class DisplayTransform(Spec):
    """Transform from a stored slice to the displayed frame: transpose, then flips (protocol 1.4)."""

    transpose: Flag = False
    flip_rows: Flag = False
    flip_cols: Flag = False


class LayoutDeclaration(Spec):
    """Declared grid of a volume; missing counts follow from the shape."""

    order: Order = "slice_major"
    n_slices: Count | None = None
    n_phases: Count | None = None


class MaskDeclaration(Spec):
    """The mask of a volume; preparation checks only its shape."""

    path: str
    sha256: Sha256 | None = None
    labels: str | None = None  # the label map of its values


class Timing(NamedTuple):
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
    layout_source: Literal["declared"] = "declared"
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
    def _filled(cls, value: object, info: ValidationInfo) -> object:
        return _filled(value, _reading(info)) if isinstance(value, dict) else value

    @property
    def anatomy(self) -> Anatomy:
        """The anatomy that sequence and view are names of."""
        return self._anatomy

    @property
    def slice_axis(self) -> SliceAxis | None:
        """The axis along which the slices are counted; None for a view with layers in no order."""
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
        if self.spatial_order != "unknown" or self.declared_layout().n_slices > 1:
            return self.spatial_order
        return self._anatomy.orders[0] if self.slice_axis is None else self.slice_axis.forward

    @property
    def over_time(self) -> str:
        """Meaning of the phases: `cycle`, `first_pass` or `nothing`."""
        return self._anatomy.sequences[self.sequence].over_time

    def declared_layout(self) -> Layout:
        """Return the layout of the frames that are used."""
        stored = self.stored_layout()
        return stored if self.take is None else Layout(stored.n_slices, 1)

    def stored_layout(self) -> Layout:
        """Return the layout of all stored frames, including those that `take` leaves out."""
        declared = self.layout
        undeclared = declared.n_slices is None and declared.n_phases is None
        order: Order = "static" if undeclared and self.over_time == "nothing" else declared.order
        return resolve(self.stored_shape, order, declared.n_slices, declared.n_phases)

    def timing(self) -> Timing:
        """Return declared or default end-diastole, end-systole and key layers (protocol 1.2, rules 4, 5).

        The default end-systole rounds 0.37 * n_phases half up, in integers.
        """
        n_slices, n_phases, _ = self.declared_layout()
        ed = self.ed_phase or 0
        es = (ed + (37 * n_phases + 50) // 100) % n_phases if self.es_phase is None else self.es_phase
        return Timing(ed, es, even(n_slices, 3) if self.key_layers is None else self.key_layers)

    def check_header(self, header: Header, *, slices_alone: bool) -> None:
        """Raise InputError if the header of the file contradicts itself or the declared spacing.

        Without `slices_alone` the third axis holds phases too: then its length is not compared if it is 1, a
        writer's default, or if a person confirmed that it is not the distance of slices.
        """
        confirmed, spacing, lengths = "spacing" in self.confirmed, header.spacing_mm, header.lengths
        is_filled = spacing is not None and spacing[2] != 1
        axes = 3 if slices_alone or (is_filled and not confirmed) else 2

        def alike(measured: Lengths, declared: Lengths) -> bool:
            return all(lengths.alike(measured, declared)[:axes])

        places = [each for each in (lengths.sform, lengths.pixdim) if each is not None]
        if lengths.contradicted and not alike(places[0], places[1]):
            if not confirmed or not any(alike(each, self.spacing_mm) for each in places):
                raise InputError(
                    f"its header contradicts itself ({lengths.words}), and study.json says "
                    f"{in_words(self.spacing_mm)}; expected one voxel size; state the right one in "
                    'spacing_mm and add "confirmed": ["spacing"]'
                )
        elif not confirmed and (doubt := lengths.doubt(self.spacing_mm)):
            raise InputError(f"{doubt}; expected lengths in mm; correct them or, {_CONFIRM_SPACING}")
        elif spacing and not alike(spacing, self.spacing_mm):
            raise InputError(
                f"its spacing is {list(spacing[:axes])} mm; expected {list(self.spacing_mm[:axes])} as "
                "declared; correct spacing_mm or file"
                + ("" if slices_alone else f", or, {_CONFIRM_SPACING}, where phases share the third axis")
            )
        if lengths.turned and "display" not in self.confirmed:
            raise InputError(
                "its sform and qform place the voxels differently; expected one position in the patient; "
                'look at it (jobs/show_study.py) and add "confirmed": ["display"]'
            )

    @model_validator(mode="after")
    def _legal(self, info: ValidationInfo) -> "VolumeManifest":
        self._anatomy = _reading(info).anatomy
        checks = self._size_problems, self._name_problems, self._time_problems, self._grid_problems
        for problem in chain.from_iterable(check() for check in checks):
            raise ValueError(problem)
        return self

    def _size_problems(self) -> Iterator[str]:
        """Refuse a huge volume before allocating anything: a few bytes of JSON can declare any size."""
        for what, most, count in (
            ("voxels", MOST_VOXELS, math.prod(self.shape)),
            ("frames", MOST_FRAMES, math.prod(self.shape[2:])),
        ):
            if count > most:
                yield f"shape has {count:,} {what}; expected at most {most:,}; correct shape"

    def _name_problems(self) -> Iterator[str]:
        kind = self._anatomy.sequences.get(self.sequence)
        if kind is None:
            yield (
                f"unknown sequence {self.sequence!r}; expected one of {', '.join(self._anatomy.sequences)}; "
                "correct sequence, or name the protocol that has it in its anatomy.yaml"
            )
        elif self.view not in kind.views:
            yield (
                f"unknown view {self.view!r} of sequence {self.sequence!r}; expected one of "
                f"{', '.join(kind.views)}; correct view"
            )
        elif self.volume_id != kind.volume_id(self.view):
            yield (
                f"volume_id is {self.volume_id!r}; expected {kind.volume_id(self.view)!r} for sequence "
                f"{self.sequence!r} and view {self.view!r}; correct volume_id"
            )
        axis = self.slice_axis
        orders = self._anatomy.orders if axis is None else (axis.forward, axis.backward, "unknown")
        if self.spatial_order not in orders:
            yield (
                f"spatial_order is {self.spatial_order!r}; expected one of {', '.join(orders)}; correct "
                "spatial_order"
            )

    def _time_problems(self) -> Iterator[str]:
        declared = [time for time in (self.t_on, self.t_peak) if time is not None]
        if declared and self.over_time != "first_pass":
            kinds = self._anatomy.sequences.items()
            timed = ", ".join(name for name, kind in kinds if kind.over_time == "first_pass")
            expected = f"expected with {timed or 'a first pass'} only"
            yield f"t_on or t_peak of a {self.sequence} volume; {expected}; remove it"
        if len(declared) == 1 or declared != sorted(declared):
            yield (
                f"t_on is {self.t_on} and t_peak {self.t_peak}; expected both with t_on <= t_peak, or neither"
            )
        n_phases = self.declared_layout().n_phases
        for name in ("ed_phase", "es_phase", "t_on", "t_peak"):
            phase = getattr(self, name)
            if phase is not None and phase >= n_phases:
                yield f"{name} is {phase}; expected 0..{n_phases - 1}; correct {name}"

    def _grid_problems(self) -> Iterator[str]:
        if self.window is not None and not self.window[0] < self.window[1]:
            yield (
                f"window is {list(self.window)}; expected the intensities shown as black and white, low "
                "below high; correct window or leave it out"
            )
        n = self.stored_layout().n_phases if self.over_time == "nothing" else 1
        if (n > 1) != (self.take is not None) or (self.take or 0) >= n:
            yield (
                f"take is {self.take}, and shape {list(self.shape)} holds {n} images of each slice of a "
                "sequence without phases; expected take with several alone, to name the one that is used"
                + (f" (0..{n - 1})" if n > 1 else "")
            )
        layers, n_slices = list(self.timing().key_layers), self.declared_layout().n_slices
        if layers != sorted(set(layers)) or len(layers) != min(3, n_slices) or max(layers) >= n_slices:
            yield (
                f"key_layers is {layers}; expected {min(3, n_slices)} ascending canonical ranks in "
                f"0..{n_slices - 1}; correct key_layers or leave it null"
            )


def _reading(info: ValidationInfo) -> Reading:
    return info.context if isinstance(info.context, Reading) else Reading(heart())


def _filled(entry: Mapping[str, Any], reading: Reading) -> dict[str, Any]:
    """Return an entry with `volume_id`, and with `shape` and `spacing_mm` if headers may be read.

    Values of the wrong type pass through; the manifest model rejects them. InputError if a header lacks a
    value.
    """
    filled, sequence, path = dict(entry), entry.get("sequence"), entry.get("path")
    kind = reading.anatomy.sequences.get(sequence) if isinstance(sequence, str) else None
    if filled.get("volume_id") is None:
        filled["volume_id"] = "" if kind is None else kind.volume_id(str(entry.get("view")))
    for name in ("shape", "spacing_mm"):
        if filled.get(name) is None and reading.header_of is not None and isinstance(path, str):
            try:
                header = reading.header_of(path)
                filled[name] = header.shape if name == "shape" else _spacing(header, entry, kind)
            except InputError as error:
                raise InputError(f"{name} is left out, and {path}: {error}") from None
    return filled


def _spacing(header: Header, entry: Mapping[str, Any], kind: Sequence | None) -> Lengths:
    if header.spacing_mm is None:
        raise InputError("its header declares no voxel size; give spacing_mm in mm")
    if header.lengths.contradicted:
        raise InputError(
            f"its header contradicts itself ({header.lengths.words}); give the right lengths as spacing_mm "
            'and add "confirmed": ["spacing"]'
        )
    if not _holds_slices_alone(header.shape, entry, kind):
        raise InputError(
            "its third axis holds phases too, so its header does not give the distance of slices; give "
            "spacing_mm"
        )
    return header.spacing_mm


def _holds_slices_alone(shape: tuple[int, ...], entry: Mapping[str, Any], kind: Sequence | None) -> bool:
    """Return whether the third axis holds slices alone, according to the declaration."""
    layout = entry.get("layout") or {}
    if shape[3:] not in ((), (1,)) or not isinstance(layout, Mapping):
        return True
    if layout.get("n_phases") is not None:
        return bool(layout["n_phases"] == 1)
    return layout.get("order") == "static" or kind is None or kind.over_time == "nothing"
