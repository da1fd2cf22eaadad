"""One frame of DICOM or NIfTI, and a stack of frames: parallel slices of phases."""

import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from cardiolens.config.base import Spec
from cardiolens.curation.ingest.reasons import Flag, Reason
from cardiolens.curation.ingest.words import Words
from cardiolens.study.volume_manifest import DisplayTransform

Vector = tuple[float, float, float]
Point = NDArray[Any]  # three coordinates or components
Frame = NDArray[Any]  # pixels (row, column)
WHOLE_CYCLE = 8  # phases from which frames may cover a heartbeat


class RejectedError(Exception):
    """A file or frame is unusable for one reason; `detail` quotes nothing of a header."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(reason.value)
        self.reason, self.detail = reason, detail


@contextmanager
def broken() -> Iterator[None]:
    """Turn a reader's errors on a damaged file into one reason; drop messages, which quote the header."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except RejectedError:
        raise
    except MemoryError:
        raise RejectedError(Reason.BROKEN_FILE, "it unpacks to too much") from None
    except OSError as error:
        raise RejectedError(Reason.BROKEN_FILE if error.errno is None else Reason.UNREADABLE) from None
    except Exception as error:  # noqa: BLE001 - pydicom, nibabel, zlib and decoders raise a dozen kinds
        is_missing = "missing" in str(error) or ("plugin" in str(error) and "install" in str(error))
        lacks = is_missing and isinstance(error, RuntimeError | NotImplementedError | ImportError)
        reason = Reason.NO_DECODER if lacks else Reason.BROKEN_FILE
        raise RejectedError(reason, type(error).__name__) from None


@dataclass(frozen=True, slots=True)
class Identity:
    """Hospital identifiers of a frame; they stay in memory and are written only as keyed hashes."""

    patient: str
    study: str
    series: str
    instance: str
    accession: str = ""
    date: str = ""
    birth_date: str = ""
    device: str = ""  # serial number of the scanner


@dataclass(frozen=True, slots=True)
class Person:
    """Facts about patient and scanner that a study may keep, as in the header."""

    sex: str = ""
    age: str = ""
    manufacturer: str = ""
    model: str = ""
    tesla: float | None = None
    height_cm: float | None = None
    weight_kg: float | None = None
    site: str = ""
    group: str = ""  # the set's own name of the patient's disease
    lv_edv_ml: float | None = None  # volumes of the left ventricle, measured by the set
    lv_esv_ml: float | None = None

    def completed_by(self, header: "Person") -> "Person":
        """Return these facts of a set, with those of the header that the set leaves open."""
        open_fields = [each.name for each in fields(self) if getattr(self, each.name) in ("", None)]
        return replace(self, **{name: getattr(header, name) for name in open_fields})


@dataclass(frozen=True, slots=True)
class Pulse:
    """The pulse sequence of a frame, as in the header; times in ms."""

    name: str = ""  # the maker's, in small letters
    scanning: tuple[str, ...] = ()
    variant: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    inversion: float | None = None
    echo: float | None = None
    flip: float | None = None


class HeaderRule(Spec):
    """What of the NIfTI headers of a set holds."""

    spacing: Literal["agree", "pixdim", "sform"] = "agree"  # agree: a contradiction waits for a person
    position: Literal["header", "none"] = "header"  # none: straight affines are none, and display is declared
    stored: Annotated[str, Field(pattern=r"^([LRAPSI]{2})?$")] = ""  # where columns and rows point, as LP
    time: Literal["header", "none"] = "header"  # none: the fourth voxel length is no time


ORDINARY = HeaderRule()  # of a header that no layout speaks of


@dataclass(frozen=True, slots=True)
class Scan:
    """Content of a NIfTI file, without its voxels."""

    place: Path
    grid: tuple[int, int, int, int]  # slices, phases, rows, columns
    affine: Point | None  # (column, row, slice) to DICOM's coordinates (left, back, head; mm)
    lengths: Vector  # mm between columns, rows, slices
    places_mm: dict[str, Vector]  # what each place of the header says of them
    doubt: str  # on the size of voxels, in words
    scale: tuple[float, float]  # slope and intercept
    phase_ms: float | None  # time between phases
    few_values: bool  # like a mask
    flags: tuple[Flag, ...]
    texts: tuple[str, ...]  # names of non-empty text fields of the header
    digests: tuple[str, ...]  # of the frames' intensities, slice by slice


@dataclass(frozen=True, slots=True)
class MaskFrame:
    """The mask of a frame, and the label map of its values."""

    place: Path
    frame: int
    labels: str


@dataclass(frozen=True, slots=True)
class Declared:
    """What a layout says of a frame's volume."""

    sequence: str
    view: str
    display: DisplayTransform | None  # where the header holds no position


@dataclass(frozen=True, slots=True, eq=False)  # frames compare by identity, not by header
class Image:
    """One frame: the header fields that decide its stack, class and position. Lengths in mm, times in ms.

    Positions and directions are DICOM's: toward the patient's left, back and head.
    """

    place: Path
    frame: int  # of a multi-frame file, from 0; 0 for a classic one
    identity: Identity
    person: Person
    rows: int
    columns: int
    spacing: tuple[float, float]  # between rows, between columns
    position: Vector
    row_direction: Vector  # along a row, as the column number grows
    column_direction: Vector
    scale: tuple[float, float] = (1.0, 0.0)  # slope and intercept
    maker_scale: tuple[float, float] | None = None  # slope and intercept of the vendor's private elements
    series_number: int = 0
    acquisition: int = 0
    instance_number: int = 0
    texts: tuple[str, str] = ("", "")  # descriptions of series and protocol
    pulse: Pulse = Pulse()
    image_type: tuple[str, ...] = ()
    component: str = ""  # M, P, R or I of a complex image, if declared
    thickness: float | None = None
    trigger: float | None = None
    temporal: int | None = None
    clock: float | None = None  # time of day of the acquisition, s
    velocity: float | None = None  # encoded by phase contrast; 0 or None for other images
    phases_declared: int | None = None
    temporals_declared: int | None = None  # temporal positions
    images_declared: int | None = None  # of its acquisition
    beat: float | None = None  # length of a heartbeat, ms
    apart: float | None = None  # of neighbouring slices, as declared
    flags: tuple[Flag, ...] = ()  # of the stack that it becomes part of
    tags: tuple[str, ...] = field(default=(), repr=False)  # keywords of all header elements
    of_set: str = ""  # the layout of the set that the file belongs to
    mask: MaskFrame | None = None
    nifti: Scan | None = None  # of a file of NIfTI
    moment: str = ""  # ED or ES, if a file or its name declares it
    declared: Declared | None = None  # by a layout

    @property
    def placed(self) -> bool:
        """Whether the position in the patient is known."""
        return self.nifti is None or self.nifti.affine is not None

    @property
    def places_mm(self) -> Mapping[str, Vector]:
        """Lengths of columns, rows and slices by the place of a NIfTI header that holds them."""
        return {} if self.nifti is None else self.nifti.places_mm


@dataclass(frozen=True, slots=True)
class Witness:
    """One statement about a stack: source, named class, reliability and evidence."""

    source: str  # words, tags, structure, geometry, pixels, layout or person
    says: str
    reliability: float  # how often a statement of this kind is right
    evidence: str


@dataclass(frozen=True, slots=True)
class Stack:
    """Frames by slice along the normal, then by phase. Positions are DICOM's (left, back, head; mm)."""

    grid: tuple[tuple[Image, ...], ...]
    words: tuple[Words, ...]  # of the series that form the stack
    witnesses: tuple[Witness, ...]  # for the sequence
    flags: tuple[Flag, ...] = ()

    @property
    def first(self) -> Image:
        return self.grid[0][0]

    @property
    def placed(self) -> bool:
        """Whether the position in the patient is known."""
        return self.first.placed

    @property
    def n_slices(self) -> int:
        return len(self.grid)

    @property
    def n_phases(self) -> int:
        return len(self.grid[0])

    @property
    def normal(self) -> Point:
        """Unit normal: rows x columns."""
        return normal(self.first)

    def tilt(self, axis: Point) -> float:
        """Return the angle between the normal and an axis, 0 to 90 degrees."""
        cosine = abs(float(self.normal @ axis)) / float(np.linalg.norm(self.normal) * np.linalg.norm(axis))
        return float(np.degrees(np.arccos(min(cosine, 1.0))))

    def distance_mm(self, point: Point) -> float:
        """Return the distance of a point from the middle plane, mm."""
        return abs(float(self.normal @ (point - self.middle)))

    @property
    def along_normal(self) -> bool:
        """Whether slice numbers grow along the normal; True for a single slice."""
        return float((self.corner(-1) - self.corner(0)) @ self.normal) >= 0

    def reversed(self) -> "Stack":
        """Return the stack with its slices in reverse order."""
        return replace(self, grid=self.grid[::-1])

    @property
    def series(self) -> list[int]:
        """Numbers of the series that form the stack."""
        return sorted({image.series_number for image in self.images()})

    @property
    def later(self) -> tuple[int, int, int]:
        """Sort key by acquisition: larger for the later of two stacks."""
        return max((image.series_number, image.acquisition, image.instance_number) for image in self.images())

    def images(self) -> Iterator[Image]:
        """Yield all frames, slice by slice."""
        for line in self.grid:
            yield from line

    def corner(self, index: int) -> Point:
        """Return the centre of a slice's first pixel."""
        return np.array(self.grid[index][0].position)

    @property
    def middle(self) -> Point:
        """The centre of the middle slice."""
        return self.point(self.n_slices // 2, (self.first.columns - 1) / 2, (self.first.rows - 1) / 2)

    def point(self, index: int, column: float, row: float) -> Point:
        """Return the patient coordinates of a slice's pixel."""
        image = self.grid[index][0]
        along, down = np.array(image.row_direction), np.array(image.column_direction)
        return self.corner(index) + along * image.spacing[1] * column + down * image.spacing[0] * row

    def away_mm(self, index: int, point: Point) -> Frame:
        """Return the distance of each pixel of a slice from a point in its plane, mm."""
        image = self.grid[index][0]
        rows, columns = np.indices((image.rows, image.columns))
        offset = point - self.corner(index)
        away: Frame = np.hypot(
            columns * image.spacing[1] - offset @ np.array(image.row_direction),
            rows * image.spacing[0] - offset @ np.array(image.column_direction),
        )
        return away

    @property
    def step(self) -> float:
        """Distance between slices, mm; the thickness of a single slice."""
        if self.n_slices == 1:
            return self.first.thickness if self.first.thickness and self.first.thickness > 0 else 8.0
        places = [float(self.corner(k) @ self.normal) for k in range(self.n_slices)]
        return float(np.median(np.abs(np.diff(places))))


def normal(image: Image) -> Point:
    """Return the unit normal of a frame's plane: rows x columns."""
    return np.cross(image.row_direction, image.column_direction)


def vector(values: Collection[Any] | Point) -> Vector:
    """Return three numbers as Python floats."""
    x, y, z = (float(value) for value in values)
    return x, y, z
